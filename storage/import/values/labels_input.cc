#include "storage/import/values/labels_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "storage/base/errors.h"
#include "storage/dataset/dataset.h"
#include "storage/import/ids/id_table.h"
#include "storage/import/ids/unknown_ids.h"
#include "storage/io/file.h"

namespace ooc {
namespace {

constexpr std::int64_t kBlockRows = 64 << 10;
constexpr std::int64_t kCredibleClasses = 65536;  // always; beyond, one for every vertex
constexpr std::array<std::string_view, 3> kSplitNames = {"train", "valid", "test"};

// Calls visit(row, value) for every row of a one-column table.
template <class Visit>
void for_each_value(TableReader& table, std::string_view phase, const Control& control,
                    Visit&& visit) {
  std::vector<std::int64_t> block(kBlockRows);
  std::int64_t row = 0;
  while (const std::int64_t count = table.read(std::span<std::int64_t>(block))) {
    for (std::int64_t i = 0; i < count; ++i, ++row) visit(row, block[i]);
    control.step(phase, static_cast<double>(row),
                 static_cast<double>(table.known_rows().value_or(0)));
  }
}

// Puts one split's vertices into `splits`.
class SplitReader {
 public:
  SplitReader(TableReader& table, Split split, std::span<std::uint8_t> splits,
              std::span<const std::int32_t> labels, const ListedIds& ids)
      : table_(table), split_(split), splits_(splits), labels_(labels), ids_(ids) {}

  void read(const Control& control) {
    const bool empty_text = table_.cols() == 0 && table_.rows() == 0;
    if (table_.cols() != 1 && !empty_text) {
      refuse_columns(table_, "a split needs",
                     "save one vector of vertex ids, or name it *_mask if it holds masks");
    }
    const std::string phase = fmt::format("reading the {} split", name_of(split_));
    if (is_mask(table_)) {
      read_mask(phase, control);
    } else {
      for_each_value(table_, phase, control,
                     [&](std::int64_t row, std::int64_t id) { add(row, id, vertex_of(row, id)); });
    }
    if (added_ > 0) return;
    throw DataError(fmt::format("the {} split is empty", name_of(split_)), table_.name(),
                    "put vertices into it or leave the file out");
  }

 private:
  static std::string_view name_of(Split split) {
    return kSplitNames[static_cast<std::size_t>(split) - 1];
  }

  void read_mask(std::string_view phase, const Control& control) {
    const auto vertices = static_cast<std::int64_t>(splits_.size());
    table_.count_rows(control);
    if (table_.rows() != vertices) {
      throw DataError(
          fmt::format("the mask has {} rows but the graph {} vertices", table_.rows(), vertices),
          table_.name(), "a mask has one row a vertex");
    }
    for_each_value(table_, phase, control, [&](std::int64_t row, std::int64_t value) {
      if (value != 0 && value != 1) {
        throw DataError(fmt::format("{} in a mask", value), table_.where(row),
                        "a mask holds 0 and 1; name a list of vertex ids *_idx");
      }
      if (value == 1) add(row, row, row);
    });
  }

  VertexId vertex_of(std::int64_t row, std::int64_t id) const {
    if (ids_.integers != nullptr) {
      if (const auto vertex = ids_.integers->find(id)) return *vertex;
      const std::string unknown = fmt::to_string(id);
      throw DataError(unknown_ids({&unknown, 1}, ids_.integers->source()), table_.where(row),
                      "correct the split");
    }
    if (id >= 0 && id < static_cast<std::int64_t>(splits_.size())) return id;
    throw DataError(
        fmt::format("vertex id {} is not within the {} vertices of the graph", id, splits_.size()),
        table_.where(row), "correct the split");
  }

  // `number` is what the table calls the vertex.
  void add(std::int64_t row, std::int64_t number, VertexId vertex) {
    const auto id = [&] {
      return ids_.strings == nullptr ? fmt::to_string(number) : quoted_id((*ids_.strings)[vertex]);
    };
    std::uint8_t& split = splits_[vertex];
    if (split == static_cast<std::uint8_t>(split_)) {
      throw DataError(fmt::format("vertex {} is in the {} split twice", id(), name_of(split_)),
                      table_.where(row),
                      "list each vertex once; if this is a 0/1 mask, name the file *_mask");
    }
    if (split != 0) {
      throw DataError(fmt::format("vertex {} is in the {} split and in the {} split", id(),
                                  name_of(static_cast<Split>(split)), name_of(split_)),
                      table_.where(row), "splits must not overlap");
    }
    if (labels_.empty() || labels_[vertex] < 0) {
      throw DataError(fmt::format("vertex {} in the {} split has no label", id(), name_of(split_)),
                      table_.where(row),
                      labels_.empty() ? "give labels too" : "label it or take it out of the split");
    }
    split = static_cast<std::uint8_t>(split_);
    ++added_;
  }

  TableReader& table_;
  Split split_;
  std::span<std::uint8_t> splits_;
  std::span<const std::int32_t> labels_;
  ListedIds ids_;
  std::int64_t added_ = 0;
};

// One typing error must not make classes by the million.
void check_largest_class(TableReader& table, const std::vector<std::int32_t>& labels) {
  const auto largest = std::max_element(labels.begin(), labels.end());
  const auto limit = std::max(kCredibleClasses, static_cast<std::int64_t>(labels.size()));
  if (largest == labels.end() || *largest < limit) return;
  throw DataError(fmt::format("class {} is not credible among {} labels", *largest, labels.size()),
                  table.where(largest - labels.begin()),
                  fmt::format("number the classes from 0; the largest may be {} here", limit - 1));
}

}  // namespace

bool is_mask(const TableReader& table) {
  if (table.kind() == ElementKind::kBool) return true;
  const std::string name = base_name(table.name());
  const std::size_t dot = std::min(name.find('.'), name.size());
  const std::size_t member = std::min(name.rfind(':'), name.size());
  const auto says_so = [](std::string_view part) {
    part = part.substr(0, part.find('.'));
    return part.ends_with("_mask") || part.ends_with("_masks");
  };
  // A member says it in the place of its archive; columns of text and their file both may.
  if (member == name.size()) return says_so(name);
  const bool text = is_text_name(name);
  return says_so(std::string_view(name).substr(member + 1)) ||
         (text && says_so(std::string_view(name).substr(0, dot)));
}

std::vector<std::int32_t> read_labels(TableReader& table, const Control& control) {
  if (table.cols() == 0) {
    throw DataError("the labels have no columns",
                    fmt::format("{}, shape ({}, 0)", table.name(), table.rows()),
                    "give one class index a vertex, -1 where it has no label");
  }
  if (table.stated_vertices()) {
    throw DataError("a matrix of edges lies where labels are needed", table.name(),
                    "write them as a vector; a .mtx in array format is one");
  }
  if (table.cols() > 1) {
    refuse_columns(table, "one class a vertex takes",
                   "give one class index a vertex, or say --label-kind one-hot, multi or values");
  }
  table.read_nan_as(-1);
  std::vector<std::int32_t> labels;
  labels.reserve(static_cast<std::size_t>(table.known_rows().value_or(0)));
  for_each_value(table, "reading labels", control, [&](std::int64_t row, std::int64_t value) {
    if (value < -1 || value >= std::numeric_limits<std::int32_t>::max()) {
      throw DataError(fmt::format("label {} is not a class index", value), table.where(row),
                      "class indexes go from 0; -1 means unlabelled");
    }
    labels.push_back(static_cast<std::int32_t>(value));
  });
  check_largest_class(table, labels);
  return labels;
}

std::vector<std::uint8_t> read_splits(const SplitTables& tables, std::int64_t vertices,
                                      std::span<const std::int32_t> labels, const ListedIds& ids,
                                      const Control& control) {
  std::vector<std::uint8_t> splits(static_cast<std::size_t>(vertices), 0);
  for (std::size_t i = 0; i < tables.size(); ++i) {
    if (tables[i] == nullptr) continue;
    SplitReader(*tables[i], static_cast<Split>(i + 1), splits, labels, ids).read(control);
  }
  return splits;
}

}  // namespace ooc
