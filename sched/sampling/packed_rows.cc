#include "sched/sampling/packed_rows.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sched/sampling/row_packer.h"
#include "storage/base/errors.h"

namespace ooc {

std::int64_t ComingRows::bytes() const {
  return static_cast<std::int64_t>(words_.keys.capacity() * sizeof(std::uint64_t) +
                                   (cold_ ? cold_->bytes() : 0));
}

void ComingRows::wait() {
  try {
    if (places_.valid()) places_.get();
    reads_.wait();
  } catch (...) {
    forsake();
    throw;
  }
}

void ComingRows::forsake() {
  batch_ = -1;
  if (places_.valid()) places_.wait();
  places_ = {};
  try {
    reads_.wait();
  } catch (...) {  // of rows that nobody wants any more
  }
}

PackedRows::PackedRows(BlockIo& io, FileSystem& files, const RowRequests& requests,
                       std::vector<RowInput> inputs, HotRows& hot, PackedRowsOptions options)
    : io_(io),
      files_(files),
      requests_(requests),
      record_(std::move(inputs)),
      hot_(hot),
      options_(std::move(options)),
      batch_rows_(requests.batch_rows.begin(), requests.batch_rows.end()) {
  requests_.batch_rows = batch_rows_;
  OOC_CHECK(hot.record_bytes() == record_.bytes());
}

std::int64_t PackedRows::working_bytes(const RowSizes& sizes, const PackedRowsOptions& options,
                                       std::int64_t batches, std::int64_t runs,
                                       std::int64_t workers) {
  const std::int64_t row = sizes.record;
  const std::int64_t words = stretch_words(std::max(words_at_once(options, row), batches), runs);
  constexpr std::int64_t kWord = sizeof(std::uint64_t), kCount = sizeof(std::uint32_t);
  const std::int64_t stretches =
      RowPacker::stretches_at_once(workers) * (words * kWord + 3 * batches * kCount + row);
  const std::int64_t buffer = RowRegions::buffer_bytes(options.write_bytes, batches);
  const std::int64_t writes = RowRegions::buffers(batches, words * row, buffer) * buffer;
  const std::int64_t places =
      RecordBuffers::bytes(0, workers, static_cast<std::size_t>(options.run_places));
  return options.input_slots * sizes.slots + stretches + writes + places;
}

std::int64_t PackedRows::words_at_once(const PackedRowsOptions& options,
                                       std::int64_t record_bytes) {
  constexpr std::int64_t kLeast = 64;
  return std::clamp(options.write_bytes / (2 * record_bytes),
                    std::min(kLeast, options.words_at_once), options.words_at_once);
}

std::int64_t PackedRows::coming_bytes(const RowRecord& record, std::int64_t rows,
                                      std::int64_t file_rows) {
  const auto cold = static_cast<std::uint64_t>(file_rows) * record.bytes();
  return rows * static_cast<std::int64_t>(sizeof(std::uint64_t)) +
         static_cast<std::int64_t>(io_aligned(cold));
}

bool PackedRows::count(Driver& driver) {
  counts_ = count_rows(driver, requests_,
                       {record_.vertices(), record_.block_rows(),
                        words_at_once(options_, static_cast<std::int64_t>(record_.bytes()))},
                       hot_);
  return counts_.has_value();
}

PackedBytes PackedRows::planned_bytes() const {
  PackedBytes bytes;
  bytes.inputs_read = RowPacker::input_bytes(record_, *counts_);
  std::int64_t cold = 0;
  for (const std::int64_t rows : counts_->cold_rows) cold += rows;
  bytes.cold_written = bytes.cold_read = cold * static_cast<std::int64_t>(record_.bytes());
  return bytes;
}

std::uint64_t PackedRows::places_read_bound() const {
  std::uint64_t bytes = 0;
  for (std::int64_t batch = 0; batch < requests_.batches(); ++batch) {
    const auto of = static_cast<std::uint64_t>(batch);
    bytes += places_->read_bound(place_fields_->begin(of), place_fields_->last(of));
  }
  return bytes;
}

PackedBytes PackedRows::moved_bytes() const {
  PackedBytes bytes;
  bytes.inputs_read = inputs_read_;
  bytes.cold_written = regions_ ? regions_->bytes_written() : 0;
  bytes.cold_read = cold_read_;
  return bytes;
}

KeyFields PackedRows::make_place_fields() const {
  const auto most = [](const std::vector<std::int64_t>& of) {
    return of.empty() ? 0 : *std::max_element(of.begin(), of.end());
  };
  const std::int64_t indices = std::max(hot_.most_rows(), most(counts_->cold_rows));
  const auto at_least_1 = [](std::int64_t count) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(1, count));
  };
  return {at_least_1(requests_.batches()), at_least_1(most(batch_rows_)), at_least_1(2 * indices)};
}

bool PackedRows::pack(Driver& driver, const std::function<void(double share)>& on_progress) {
  OOC_CHECK(counts_.has_value() && !regions_);
  place_fields_ = make_place_fields();
  regions_.emplace(
      io_, counts_->cold_rows, record_.bytes(),
      RowRegions::Options{options_.write_bytes, static_cast<std::int64_t>(counts_->most_words()),
                          options_.scratch});
  places_.emplace(files_, options_.places_path, 0, static_cast<std::size_t>(options_.places_bytes));
  const std::uint64_t most = std::max<std::uint64_t>(1, requests_.words.size());
  RecordBuffers buffers(*places_, driver.workers(),
                        std::min(static_cast<std::uint64_t>(options_.run_places), most));
  {
    RowPacker packer(driver, requests_, record_, *counts_,
                     {hot_, *regions_, buffers, *place_fields_}, options_.input_slots,
                     inputs_read_);
    if (!packer.run(on_progress)) return false;
  }
  regions_->finish();
  buffers.finish();
  return true;
}

void PackedRows::read(std::int64_t batch, ComingRows& rows) const {
  rows.forsake();
  rows.batch_ = batch;
  rows.places_ = std::async(std::launch::async, [this, batch, words = &rows.words_] {
    const auto of = static_cast<std::uint64_t>(batch);
    places_->read(place_fields_->begin(of), place_fields_->last(of), *words);
  });
  if (!regions_->in_file()) return;
  const std::int64_t bytes = regions_->region_bytes(batch);
  const std::size_t room = io_aligned(static_cast<std::uint64_t>(bytes));
  if (!rows.cold_ || rows.cold_->bytes() < room) {
    rows.cold_.reset();
    rows.cold_.emplace(room, "cold rows of a batch");
  }
  regions_->read(batch, rows.cold_->data(), rows.reads_);
  cold_read_ += bytes;
}

void PackedRows::assemble(ComingRows& rows, std::span<const RowOutput> outputs) const {
  rows.wait();
  OOC_CHECK(rows.batch_ >= 0);
  OOC_CHECK(static_cast<std::int64_t>(rows.words_.size()) ==
            batch_rows_[static_cast<std::size_t>(rows.batch_)]);
  const std::byte* const cold = rows.cold_ ? rows.cold_->data() : nullptr;
  assemble_rows(record_, {rows.words_.keys, *place_fields_, hot_.data(), cold}, outputs);
}

}  // namespace ooc
