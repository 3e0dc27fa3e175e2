#include "engine/batches/sample_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "engine/batches/batch_forecast.h"
#include "engine/batches/batch_loader.h"
#include "engine/batches/batch_memory.h"
#include "engine/batches/batch_programs.h"
#include "engine/machine/devices.h"
#include "engine/machine/host_memory.h"
#include "engine/train/config_words.h"
#include "engine/train/graph_inputs.h"
#include "storage/base/byte_size.h"
#include "storage/base/errors.h"
#include "storage/batches/batch_file.h"

namespace ooc {
namespace {

using Vertices = std::vector<std::uint32_t>;

// Seeds of one split.
struct SplitSeeds {
  Split split = Split::kNone;
  Vertices vertices;
  std::int64_t epochs = 1;
};

SampledBy sampled_by(const SampleOptions& options) {
  const SamplingConfig& sampling = options.sampling;
  return {sampling.fanouts.hops,
          sampling.batch_size,
          sampling.replace,
          word_of(kSamplers, sampling.sampler),
          sampling.batch_dependency,
          sampling.weighted,
          options.seed};
}

BatchLoaderOptions loader_options(const BatchLayout& layout, const SampleOptions& options,
                                  std::shared_ptr<const SampledVertices> vertices) {
  BatchLoaderOptions loading;
  loading.hops = training_hops(options.sampling);
  loading.batch_size = options.sampling.batch_size;
  if (options.sampling.sampler == Sampler::kLabor) {
    loading.batch_dependency = options.sampling.batch_dependency;
  }
  for (const BatchTensor& tensor : layout.tensors()) {
    const int level = tensor.of_seeds ? 0 : static_cast<int>(layout.hops());
    loading.inputs.push_back({tensor.name, tensor.dtype, level, tensor.cols});
  }
  loading.out_edges = false;
  loading.workers = workers_of(1);
  loading.vertices = std::move(vertices);
  return loading;
}

Vertices seeds_of(const Dataset& dataset, Split split, const SampledVertices& vertices,
                  const SampleOptions& options) {
  Vertices seeds;
  if (dataset.has_splits()) {
    seeds = vertices_of(dataset, split, vertices.names);
  } else if (split == Split::kNone) {
    seeds.resize(static_cast<std::size_t>(dataset.vertices()));
    std::iota(seeds.begin(), seeds.end(), 0u);
    if (!vertices.names.empty()) {
      std::sort(seeds.begin(), seeds.end(), [&](std::uint32_t a, std::uint32_t b) {
        return vertices.names[a] < vertices.names[b];
      });
    }
  }
  if (options.only) {
    std::erase_if(seeds, [&](std::uint32_t vertex) {
      return !std::binary_search(options.only->begin(), options.only->end(), vertex);
    });
  }
  return seeds;
}

std::vector<SplitSeeds> all_seeds(const Dataset& dataset, const SampledVertices& vertices,
                                  const SampleOptions& options) {
  std::vector<SplitSeeds> all;
  for (const Split split : options.splits) {
    Vertices seeds = seeds_of(dataset, split, vertices, options);
    if (seeds.empty()) continue;
    all.push_back({split, std::move(seeds), split == Split::kTrain ? options.epochs : 1});
  }
  if (!all.empty()) return all;
  throw DataError("no vertex is a seed: these splits are empty", dataset.path(),
                  "give --seeds all, or import the dataset with splits");
}

SeedBatches batches_of(const SplitSeeds& seeds, std::int64_t epoch, const SampleOptions& options,
                       std::span<const std::uint32_t> names) {
  const std::int64_t batch_size = options.sampling.batch_size;
  const auto batches = [&](SeedStream stream) {
    std::vector<std::uint32_t> vertices = seeds.vertices;
    if (stream != SeedStream::kOther) {
      shuffle_judged(vertices, seeds.split, options.seed, names);
    }
    return SeedBatches(std::move(vertices), batch_size, seed_key(stream, options.seed, epoch));
  };
  switch (seeds.split) {
    case Split::kTrain:
      break;
    case Split::kValid:
      return batches(SeedStream::kEvaluate);
    case Split::kTest:
      return batches(SeedStream::kTest);
    case Split::kNone:
      return batches(SeedStream::kOther);
  }
  return epoch_batches(seeds.vertices, batch_size, options.seed, epoch, names);
}

void check_options(const Dataset& dataset, const SampleOptions& options) {
  if (options.sampling.weighted && !dataset.manifest().edges.data.weights) {
    throw UsageError("--weighted on a dataset without edge weights", dataset.path(),
                     "leave it out, or import the dataset with --edge-weights");
  }
  dataset.check_labels();
}

// Rows of the seeds alone.
void check_disk(const BatchesManifest& manifest, const SampleOptions& options) {
  std::int64_t row = 0;
  for (const BatchTensor& tensor : batch_tensors(manifest.dataset)) {
    row += tensor.cols * static_cast<std::int64_t>(dtype_bytes(tensor.dtype));
  }
  const std::int64_t least = manifest.seeds() * row;
  if (least <= options.disk_bytes) return;
  throw IoError(fmt::format("no space left for batches: {} are free, the seeds' rows alone take {}",
                            format_byte_size(options.disk_bytes), format_byte_size(least)),
                options.output, "free some, or choose another output");
}

double DegreeClass::*kind_of(Split split) {
  switch (split) {
    case Split::kTrain:
      return &DegreeClass::train;
    case Split::kValid:
      return &DegreeClass::valid;
    case Split::kTest:
      return &DegreeClass::test;
    case Split::kNone:
      break;
  }
  return &DegreeClass::vertices;
}

// Files of two superbatches are there at once, one after the other. Vertices are looked at by kind:
// of a section that is fewer of them a superbatch has as much less.
ScratchNeed needed_scratch(const SampledCounts& counts, BatchLoaderOptions loading,
                           const BatchMemory& memory, const BatchesManifest& manifest) {
  loading.memory = memory;
  ScratchNeed need;
  std::map<Split, std::int64_t> seeds;  // of the largest section
  for (const BatchSection& section : manifest.sections) {
    seeds[section.split] = std::max(seeds[section.split], section.seeds);
  }
  for (const auto& [split, count] : seeds) {
    const auto forecast = [&](double DegreeClass::*kind) {
      return forecast_batches(counts, loading, kind, forecast_hot(counts, loading, kind), true);
    };
    BatchForecast of = forecast(kind_of(split));
    if (of.batches == 0) of = forecast(&DegreeClass::vertices);  // none of them was looked at
    const std::int64_t together = ceil_div(of.batches, of.superbatches);
    const double share =
        static_cast<double>(count) / static_cast<double>(together * loading.batch_size);
    const double at_once = manifest.sections.size() > 1 || share > 1 ? 2 : 1;
    need.bytes = std::max(need.bytes,
                          static_cast<std::int64_t>(at_once * std::min(share, 1.0) * of.scratch));
    need.together =
        std::max(need.together, std::min(together, ceil_div(count, loading.batch_size)));
  }
  return need;
}

BatchMemory memory_of(const Dataset& dataset, const BatchLoaderOptions& loading,
                      const BatchesManifest& manifest, const SampleOptions& options) {
  SampledCounts counts = sampled_counts(dataset);
  counts.degrees = degree_classes(dataset);
  counts.train = 0;
  std::vector<double DegreeClass::*> seeds;
  for (const BatchSection& section : manifest.sections) {
    counts.train = std::max(counts.train, section.seeds);
    seeds.push_back(kind_of(section.split));
  }
  counts.judged = manifest.seeds() - counts.train;
  RunBudget budget;
  budget.host_bytes = options.memory_bytes;
  budget.resident_bytes = held_host_bytes();
  BatchMemory memory = share_sampling_memory(counts, loading, seeds, budget);
  fit_scratch(
      options.scratch_bytes, options.scratch.empty() ? options.output : options.scratch,
      [&](const BatchMemory& given) { return needed_scratch(counts, loading, given, manifest); },
      memory);
  return memory;
}

// Batches of one run of passes after the other; the next ones are made while these are written.
void write_batches(BatchLoader& loader, std::vector<SeedBatches> sections, std::int64_t batches,
                   const Control& control, BatchFileWriter& writer) {
  const auto& tensors = writer.layout().tensors();
  std::int64_t done = 0;
  for (std::size_t i = 0; i < sections.size(); ++i) {
    loader.begin(sections[i]);
    bool is_announced = i + 1 == sections.size();
    control.step("sampling batches", static_cast<double>(done), static_cast<double>(batches));
    while (loader.next(control.stop)) {
      if (loader.has_all() && !std::exchange(is_announced, true)) loader.announce(sections[i + 1]);
      const BatchContent& content = loader.batch().content();
      BatchView batch{
          {content.level_rows.begin(), content.level_rows.end()}, content.edges, content.records};
      for (const BatchTensor& tensor : tensors) {
        batch.rows.push_back(content.rows.at(tensor.name).slices.first);
      }
      writer.add(batch);
      control.step("sampling batches", static_cast<double>(++done), static_cast<double>(batches));
    }
    control.check();
    sections[i] = {};
  }
}

}  // namespace

BatchesManifest sample_batches(BlockIo& io, FileSystem& files, const Dataset& dataset,
                               const SampleOptions& options, const Control& control) {
  BatchFileWriter writer(files, options.output, options.force);
  check_options(dataset, options);
  const auto vertices = std::make_shared<const SampledVertices>(dataset);
  BatchesManifest manifest;
  manifest.dataset = dataset.manifest();
  manifest.sampled = sampled_by(options);
  std::vector<SeedBatches> sections;
  for (const SplitSeeds& seeds : all_seeds(dataset, *vertices, options)) {
    for (std::int64_t epoch = 1; epoch <= seeds.epochs; ++epoch) {
      sections.push_back(batches_of(seeds, epoch, options, vertices->names));
      manifest.sections.push_back(
          {seeds.split, sections.back().count(), std::ssize(seeds.vertices)});
    }
  }
  const GraphInputs inputs(io, dataset);
  BatchLoaderOptions loading = loader_options(manifest.layout(), options, vertices);
  loading.on_wait = [&](double share) { control.step("preparing batches", share, 1); };
  loading.are_alike =
      std::none_of(manifest.sections.begin(), manifest.sections.end(),
                   [](const BatchSection& section) { return section.split == Split::kNone; });
  loading.memory = memory_of(dataset, loading, manifest, options);
  loading.scratch = options.scratch.empty() ? writer.scratch_path() : options.scratch;
  check_disk(manifest, options);
  const std::int64_t batches = manifest.batches();
  writer.begin(std::move(manifest));
  {
    BatchLoader loader(io, files, dataset, inputs, std::move(loading));
    write_batches(loader, std::move(sections), batches, control, writer);
  }
  return writer.commit();
}

}  // namespace ooc
