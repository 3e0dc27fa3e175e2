// What happened when, as Chrome's trace format has it: chrome://tracing and Perfetto show it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "storage/base/run_clock.h"
#include "storage/io/block_file.h"
#include "storage/io/file.h"

namespace ooc {

// Many threads. The file is a list of events, which may lack its end: it can be shown of a run that
// was killed, too.
class Trace {
 public:
  using Time = RunClock::Time;

  // Replaces the file. IoError where it can't be written. The clock outlives it.
  Trace(FileSystem& files, const std::string& path, const RunClock& clock = machine_clock());
  ~Trace();  // what it can't write is left out, and warned of
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  Time now() const { return clock_.now(); }
  // Something of a process (a device, or the host), on one of its tracks: shown one above the
  // other, in the order of their names.
  struct Event {
    std::string_view process, track, name;
    Time begin, end;
    std::int64_t bytes = 0;  // 0: it moves none
  };
  void add(const Event& event);

 private:
  int number_of(const std::string& process, const std::string& track);
  void write(const std::string& text);

  const RunClock& clock_;
  const Time start_;
  std::mutex mutex_;
  std::unique_ptr<WritableFile> file_;
  std::uint64_t written_ = 0;
  std::string buffer_;
  std::map<std::string, int> processes_;
  std::map<std::pair<std::string, std::string>, int> tracks_;
  bool failed_ = false;
};

// Another BlockIo, whose reads and writes a trace has, from when they are asked for. Both outlive
// it.
class TracedBlockIo final : public BlockIo {
 public:
  TracedBlockIo(BlockIo& base, Trace& trace) : base_(base), trace_(trace) {}

  std::string_view name() const override { return base_.name(); }
  bool moves_data() const override { return base_.moves_data(); }
  std::unique_ptr<BlockFile> open(const std::string& path) override { return base_.open(path); }
  std::unique_ptr<BlockFile> create_temporary(const std::string& directory,
                                              std::uint64_t bytes) override {
    return base_.create_temporary(directory, bytes);
  }
  void submit(BlockRequest request) override;

 private:
  int take_lane();
  void give_back(int lane);

  BlockIo& base_;
  Trace& trace_;
  std::mutex mutex_;
  std::map<int, bool> busy_;  // tracks, since reads overlap
};

}  // namespace ooc
