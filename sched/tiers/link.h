// The link between the host's memory and a device's, or from another device's: copies that say when
// they are done, in all directions at once.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "kernels/device/backend.h"
#include "sched/workers/queue_watcher.h"
#include "storage/io/block_file.h"
#include "storage/io/trace.h"

namespace ooc {

// How a device gets what another one has. Many threads.
class PeerLink {
 public:
  virtual ~PeerLink() = default;
  // `done` is called once, later, from a thread that holds no lock.
  virtual void from_peer(std::byte* device, const std::byte* peer, std::size_t bytes,
                         BlockCompletion done) = 0;
  // The same of what needs no copy.
  virtual void complete(BlockCompletion done) = 0;
};

// Many threads. Copies are handed to the device at once, so that its queues always have the next
// one; those of a direction are done in that order.
class Link final : public PeerLink {
 public:
  // The backend outlives it. `peers`: there are other devices, from which it copies, too.
  // `trace` (null: none) gets its copies, as those of `name`.
  explicit Link(Backend& backend, bool peers = false, Trace* trace = nullptr,
                const std::string& name = {});
  ~Link() override = default;  // when all copies are done; their completions ask for no others then
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // `done` is called once, from a thread of the link, as completions of a BlockIo are; with the
  // device's error if it failed.
  void to_device(std::byte* device, const std::byte* host, std::size_t bytes, BlockCompletion done);
  void from_device(std::byte* host, const std::byte* device, std::size_t bytes,
                   BlockCompletion done);
  void from_peer(std::byte* device, const std::byte* peer, std::size_t bytes,
                 BlockCompletion done) override;
  void complete(BlockCompletion done) override { in_.complete(std::move(done)); }

 private:
  class Way {
   public:
    Way(Queue& queue, std::string process, const char* name, Trace* trace)
        : queue_(queue),
          process_(std::move(process)),
          name_(name),
          trace_(trace),
          watcher_(queue) {}
    ~Way();
    void copy(void* to, const void* from, std::size_t bytes, BlockCompletion done);
    void complete(BlockCompletion done) { watcher_.complete(nullptr, std::move(done)); }

   private:
    BlockCompletion traced(std::size_t bytes, BlockCompletion done);

    Queue& queue_;
    const std::string process_;
    const char* const name_;
    Trace* const trace_;
    Trace::Time free_{};  // when the last copy was done; the watcher's thread
    std::mutex issuing_;
    QueueWatcher watcher_;
  };

  Way in_, out_;
  std::optional<Way> peer_;
};

}  // namespace ooc
