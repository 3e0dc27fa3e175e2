#include "storage/dataset/names_export.h"

#include <algorithm>
#include <vector>

#include "storage/base/errors.h"
#include "storage/dataset/original_names.h"
#include "storage/io/text_file.h"

namespace ooc {
namespace {

constexpr std::int64_t kStepRows = 1 << 14;  // read between two looks at the control

}  // namespace

void write_named_edges(FileSystem& files, const Dataset& dataset, const std::string& path,
                       const Control& control, const std::function<void(const TileView&)>& visit) {
  const EdgeFile& edges = dataset.edge_file(Direction::kIn);
  const EdgeLayout& layout = edges.layout();
  const OriginalNames names(dataset);
  TextFile file(files, path);
  file.add_line("source,destination");
  std::string buffer;
  std::int64_t written = 0;
  for (std::int64_t span = 0; span < layout.span_count(); ++span) {
    for (std::int64_t panel = 0; panel < layout.panel_count(); ++panel) {
      for (const PanelTile& entry : edges.tiles(span, panel)) {
        for_each_edge(entry.tile, [&](std::uint16_t row, std::uint16_t source) {
          file.add_field(names.of(span * layout.span_rows + source, buffer));
          file.add(",");
          file.add_field(names.of(entry.block * layout.block_rows + row, buffer));
          file.add("\n");
        });
        visit(entry.tile);
        written += entry.tile.edge_count;
      }
      control.step("writing edges", static_cast<double>(written),
                   static_cast<double>(layout.edges));
    }
  }
  file.finish();
}

// The rows of as many ids at a time as fit the memory, then their names in order.
std::int64_t write_names(FileSystem& files, const Dataset& dataset, const std::string& path,
                         const NameList& list, const Control& control) {
  constexpr std::int64_t kNotListed = -1;
  const OriginalNames names(dataset);
  const VertexTensorFile& id_tensor = *dataset.tensor("ids");
  TextFile file(files, path);
  const std::int64_t vertices = dataset.vertices();
  const std::int64_t range = std::clamp<std::int64_t>(list.memory_bytes / 16, 1, vertices);
  std::vector<std::int64_t> rows, ids(static_cast<std::size_t>(kStepRows));
  std::vector<std::uint8_t> splits(static_cast<std::size_t>(kStepRows));
  std::string buffer;
  std::int64_t written = 0;
  for (std::int64_t first = 0; first < vertices; first += range) {
    rows.assign(static_cast<std::size_t>(std::min(range, vertices - first)), kNotListed);
    for (std::int64_t begin = 0; begin < vertices; begin += kStepRows) {
      control.step("writing ids", static_cast<double>(begin), static_cast<double>(vertices));
      const std::int64_t count = std::min(kStepRows, vertices - begin);
      id_tensor.read_rows(begin, count, ids.data());
      if (list.split > 0) dataset.tensor("splits")->read_rows(begin, count, splits.data());
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        if (list.split > 0 && splits[i] != list.split) continue;
        const auto place = static_cast<std::size_t>(ids[i] - first);
        if (place < rows.size()) rows[place] = begin + static_cast<std::int64_t>(i);
      }
    }
    for (const std::int64_t row : rows) {
      if (row == kNotListed) continue;
      const std::string_view name = names.of(row, buffer);
      if (list.split > 0) {
        file.add_field(name);
      } else {
        file.add(name);
      }
      file.add("\n");
      if (++written % kStepRows == 0) control.check();
    }
  }
  file.finish();
  return written;
}

}  // namespace ooc
