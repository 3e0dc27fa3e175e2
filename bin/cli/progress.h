// How far a long job is, on stderr: on a terminal a bar that is drawn again and again, elsewhere a
// line at most every few seconds.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace ooc::cli {

// How far one activity has come since it began.
struct ProgressUpdate {
  std::string activity;    // "training", "sorting edges"; another one starts another bar
  std::string unit;        // "epochs"; empty: only the share done means something
  double done = 0;         // units
  double total = 0;        // units; 0: not known
  std::int64_t bytes = 0;  // moved so far; 0: left out
  std::string note;        // "loss 0.53"
};

// May be used from many threads.
class Progress {
 public:
  // Where the text goes and when it is; stderr and the steady clock in programs.
  struct Output {
    std::function<void(std::string_view)> write;
    std::function<double()> seconds;
    bool terminal = false;
    // Of the terminal, as it is now. A line is shorter: one that wraps can't be written anew.
    std::function<std::size_t()> columns;
    bool silent = false;
  };
  static Output standard_output(bool quiet);

  explicit Progress(Output output) : output_(std::move(output)) {}
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(const ProgressUpdate& update);
  // For libraries that report (activity, done, total) in a unit of their own.
  std::function<void(std::string_view, double, double)> callback();
  // Takes the bar away.
  void finish();

 private:
  Output output_;
  std::mutex mutex_;
  ProgressUpdate first_;  // of the activity: rates count from there
  double started_ = 0;
  double shown_ = 0;
  bool bar_visible_ = false;
};

}  // namespace ooc::cli
