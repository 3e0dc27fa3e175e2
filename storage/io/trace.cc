#include "storage/io/trace.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <span>

#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::size_t kBuffered = 1 << 20;

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') out += '\\';
    out += static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter;
  }
  return out + '"';
}

double microseconds(RunClock::Duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

}  // namespace

Trace::Trace(FileSystem& files, const std::string& path, const RunClock& clock)
    : clock_(clock), start_(clock.now()), file_(files.create(path)) {
  write("[");
  file_->write_at(0, std::as_bytes(std::span(buffer_)));
}

Trace::~Trace() {
  const std::lock_guard lock(mutex_);
  try {
    write("\n]\n");
    if (failed_) return;
    file_->write_at(written_, std::as_bytes(std::span(buffer_)));
    file_->close();
  } catch (const Error& error) {
    spdlog::warn("the trace is incomplete: {}", error.what());
  }
}

void Trace::write(const std::string& text) {
  buffer_ += text;
  if (failed_ || buffer_.size() < kBuffered) return;
  try {
    file_->write_at(written_, std::as_bytes(std::span(buffer_)));
  } catch (const Error& error) {
    failed_ = true;
    spdlog::warn("the trace ends here: {}", error.what());
  }
  written_ += buffer_.size();
  buffer_.clear();
}

// With the lines that name what is new.
int Trace::number_of(const std::string& process, const std::string& track) {
  const auto separator = [this] { return written_ + buffer_.size() > 1 ? ",\n" : "\n"; };
  const auto name = [&](const char* what, int process_number, int track_number,
                        const std::string& text) {
    write(fmt::format(R"({}{{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":{}}}}})",
                      separator(), what, process_number, track_number, quoted(text)));
  };
  const auto [of, new_process] = processes_.emplace(process, static_cast<int>(processes_.size()));
  if (new_process) name("process_name", of->second, 0, process);
  const auto [at, new_track] =
      tracks_.emplace(std::pair(process, track), static_cast<int>(tracks_.size()) + 1);
  if (new_track) name("thread_name", of->second, at->second, track);
  return at->second;
}

void Trace::add(const Event& event) {
  const std::string process(event.process), track(event.track);
  const std::lock_guard lock(mutex_);
  if (failed_) return;
  const int number = number_of(process, track);
  const std::string bytes =
      event.bytes > 0 ? fmt::format(R"(,"args":{{"bytes":{}}})", event.bytes) : "";
  write(fmt::format(
      ",\n{{\"name\":{},\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f}{}}}",
      quoted(event.name), processes_.at(process), number, microseconds(event.begin - start_),
      microseconds(event.end - event.begin), bytes));
}

int TracedBlockIo::take_lane() {
  const std::lock_guard lock(mutex_);
  const auto free =
      std::find_if(busy_.begin(), busy_.end(), [](const auto& at) { return !at.second; });
  const int lane = free == busy_.end() ? static_cast<int>(busy_.size()) : free->first;
  busy_[lane] = true;
  return lane;
}

void TracedBlockIo::give_back(int lane) {
  const std::lock_guard lock(mutex_);
  busy_[lane] = false;
}

void TracedBlockIo::submit(BlockRequest request) {
  const auto begin = trace_.now();
  const char* const name = request.kind == BlockRequest::Kind::kRead ? "read" : "write";
  const int lane = take_lane();
  request.done = [this, begin, name, lane, bytes = request.bytes,
                  done = std::move(request.done)](std::exception_ptr error) {
    trace_.add({"storage", fmt::format("I/O {}", lane), name, begin, trace_.now(),
                static_cast<std::int64_t>(bytes)});
    give_back(lane);
    done(std::move(error));
  };
  base_.submit(std::move(request));
}

}  // namespace ooc
