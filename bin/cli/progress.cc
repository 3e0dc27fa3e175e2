#include "bin/cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "bin/cli/terminal.h"
#include "bin/cli/text.h"
#include "storage/base/byte_size.h"

namespace ooc::cli {
namespace {

constexpr double kBarSeconds = 0.1;   // between two drawings of a bar
constexpr double kLineSeconds = 5.0;  // between two lines where there is no terminal
constexpr std::size_t kBarColumns = 24, kLeastBarColumns = 4;

// ` [====    ]` in at most so many columns; empty where it would be too short to tell anything.
std::string bar(const ProgressUpdate& update, std::size_t columns) {
  constexpr std::size_t kFrame = 3;
  if (update.total <= 0 || columns < kFrame + kLeastBarColumns) return "";
  const std::size_t width = std::min(kBarColumns, columns - kFrame);
  const double share = std::clamp(update.done / update.total, 0.0, 1.0);
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(width));
  return " [" + std::string(filled, '=') + std::string(width - filled, ' ') + "]";
}

std::string format_count(double count) {
  if (count < 9.95) return fmt::format("{:.1f}", count);
  if (count < 1e6) return fmt::format("{:.0f}", count);
  return fmt::format("{:.1f} M", count / 1e6);
}

std::string amount(const ProgressUpdate& update) {
  if (update.unit.empty()) {
    return update.total > 0 ? fmt::format(" {:.0f} %", 100 * update.done / update.total) : "";
  }
  if (update.total > 0)
    return fmt::format(" {:.0f}/{:.0f} {}", update.done, update.total, update.unit);
  return fmt::format(" {:.0f} {}", update.done, update.unit);
}

// What follows the activity and its bar; the bytes are what can be left out first.
std::string rest_of(const ProgressUpdate& update, const ProgressUpdate& first, double elapsed,
                    bool with_bytes) {
  std::string text = amount(update);
  if (elapsed > 0) {
    const double rate = (update.done - first.done) / elapsed;
    if (!update.unit.empty()) text += fmt::format(", {}/s", format_count(rate));
    if (with_bytes && update.bytes > 0) {
      const double byte_rate = static_cast<double>(update.bytes - first.bytes) / elapsed;
      text += fmt::format(", {} at {}/s", format_byte_size(update.bytes),
                          format_byte_size(static_cast<std::int64_t>(byte_rate)));
    }
    if (update.total > 0 && rate > 0) {
      text += fmt::format(", {} left", format_duration((update.total - update.done) / rate));
    }
  }
  if (!update.note.empty()) text += ", " + update.note;
  return text;
}

// One line of a terminal with so many columns.
std::string line_of(const ProgressUpdate& update, const ProgressUpdate& first, double elapsed,
                    std::size_t columns) {
  const std::size_t most = std::max<std::size_t>(columns, 1) - 1;
  std::string rest = rest_of(update, first, elapsed, true);
  if (update.activity.size() + rest.size() > most) rest = rest_of(update, first, elapsed, false);
  const std::size_t taken = update.activity.size() + rest.size();
  std::string text = update.activity + bar(update, most - std::min(most, taken)) + rest;
  text.resize(std::min(most, text.size()));
  return text;
}

}  // namespace

Progress::Output Progress::standard_output(bool quiet) {
  Output output;
  output.write = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  };
  output.seconds = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  output.terminal = stderr_renews_lines();
  output.columns = stderr_columns;
  output.silent = quiet;
  return output;
}

Progress::~Progress() { finish(); }

void Progress::update(const ProgressUpdate& update) {
  if (output_.silent) return;
  const std::lock_guard lock(mutex_);
  const double now = output_.seconds();
  if (update.activity != first_.activity) {
    started_ = now;
    first_ = update;
    shown_ = now;
    return;
  }
  if (now - shown_ < (output_.terminal ? kBarSeconds : kLineSeconds)) return;
  shown_ = now;
  const double elapsed = now - started_;
  output_.write(output_.terminal ? kClearLine + line_of(update, first_, elapsed, output_.columns())
                                 : update.activity + rest_of(update, first_, elapsed, true) + "\n");
  bar_visible_ = output_.terminal;
}

std::function<void(std::string_view, double, double)> Progress::callback() {
  return [this](std::string_view activity, double done, double total) {
    update({std::string(activity), "", done, total, 0, ""});
  };
}

void Progress::finish() {
  const std::lock_guard lock(mutex_);
  if (bar_visible_) output_.write(kClearLine);
  bar_visible_ = false;
}

}  // namespace ooc::cli
