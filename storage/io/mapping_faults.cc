#include "storage/io/mapping_faults.h"

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <utility>

namespace ooc {
namespace {

constexpr std::size_t kSlots = 256;

// Read by the signal handler: a slot holds while its path is not null.
struct Watched {
  std::atomic<const char*> path{nullptr};
  std::atomic<const std::byte*> begin{nullptr};
  std::atomic<const std::byte*> end{nullptr};
};
std::array<Watched, kSlots> watched;
std::mutex slots_mutex;
std::once_flag installed;

// In one call, so that the line stays whole beside those of others.
template <std::size_t n>
void put(const std::array<const char*, n>& texts) {
  std::array<iovec, n> parts;
  for (std::size_t i = 0; i < n; ++i) {
    parts[i] = {const_cast<char*>(texts[i]), std::strlen(texts[i])};
  }
  [[maybe_unused]] const auto written = ::writev(STDERR_FILENO, parts.data(), n);
}

void on_bus_error(int signal, siginfo_t* info, void*) {
  if (info->si_code <= 0) {  // somebody sent it
    std::signal(signal, SIG_DFL);
    ::raise(signal);
    return;
  }
  const auto* const address = static_cast<const std::byte*>(info->si_addr);
  for (const Watched& slot : watched) {
    const char* const path = slot.path.load();
    if (path == nullptr || address < slot.begin.load() || address >= slot.end.load()) continue;
    put(std::array<const char*, 4>{
        program_invocation_short_name,
        ": error: cannot read a mapped file: its disk failed or it was cut short, ", path,
        "; check it with ooc-prep verify\n"});
    ::_exit(1);
  }
  std::signal(signal, SIG_DFL);  // the access is made again, and ends the process
}

void install() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace

MappingFaults::MappingFaults(std::span<const std::byte> mapping, std::string path)
    : path_(std::move(path)), slot_(kSlots) {
  std::call_once(installed, install);
  const std::lock_guard lock(slots_mutex);
  for (std::size_t i = 0; i < kSlots; ++i) {
    Watched& slot = watched[i];
    if (slot.path.load() != nullptr) continue;
    slot.begin = mapping.data();
    slot.end = mapping.data() + mapping.size();
    slot.path = path_.c_str();
    slot_ = i;
    return;
  }
}

MappingFaults::~MappingFaults() {
  if (slot_ == kSlots) return;
  const std::lock_guard lock(slots_mutex);
  watched[slot_].path = nullptr;
}

}  // namespace ooc
