// Items that come in one after the other while earlier ones are worked on: the reads of one use of
// a pass. An item is loaded into a slot of the use's ring, unless it has a place of its own.
//
//   absent -> coming -> (being checked, by a worker) -> there -> released
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "sched/driver.h"
#include "sched/leaving_rows.h"

namespace ooc {

// What the items of a stream are.
class ItemLoader {
 public:
  virtual ~ItemLoader() = default;
  virtual std::int64_t count() const = 0;
  // Items that are worked on together.
  virtual std::int64_t at_once() const { return 1; }
  // Where an item lies by itself; null: it takes a slot.
  virtual std::byte* place(std::int64_t item) const = 0;
  // Whether it can't be loaded yet: an earlier item is bringing all of it, its rows are still on
  // their way to storage, or others still lie in its place.
  virtual bool must_wait(std::int64_t item) const = 0;
  // Submits the reads of what isn't there yet into `data`, each with a completion() of its own.
  // Under the driver's lock.
  virtual void load(std::int64_t item, std::byte* data,
                    const std::function<BlockCompletion()>& completion) = 0;
  // Whether a worker has to look at it when all of it has come.
  virtual bool needs_check(std::int64_t item) const = 0;
  virtual void check(std::int64_t item, const std::byte* data) = 0;
  // Under the lock: when all that load() submitted is there; whether the rest is too, which another
  // stream may have asked for; and when nobody uses the item any more.
  virtual void arrived(std::int64_t item) = 0;
  virtual bool complete(std::int64_t item) const = 0;
  virtual void released(std::int64_t item) = 0;
};

// All of it under the driver's lock; advance() by the driving thread.
class ItemStream {
 public:
  ItemStream(Driver& driver, std::unique_ptr<ItemLoader> loader, Slots slots);

  // Loads the next item, if there is room for it and it is time.
  bool advance();
  bool ready(std::int64_t item) const;
  std::byte* data(std::int64_t item) const { return at(item).data; }
  // Before its first use: it is given back by so many release().
  void hold(std::int64_t item, std::int64_t uses);
  void release(std::int64_t item);
  ItemLoader& loader() const { return *loader_; }

 private:
  struct Item {
    std::byte* data = nullptr;
    std::byte* slot = nullptr;
    std::int64_t pending = 0;  // transfers
    std::int64_t uses = 0;
    bool was_read = false;  // not at hand before
    bool there = false;
  };
  Item& at(std::int64_t item) { return items_.at(item); }
  const Item& at(std::int64_t item) const { return items_.at(item); }
  void load(std::int64_t item);
  void came(std::int64_t item);

  Driver& driver_;
  std::unique_ptr<ItemLoader> loader_;
  std::unordered_map<std::int64_t, Item> items_;  // loaded or held, and not released
  Slots slots_;
  std::int64_t next_ = 0;     // to be loaded
  std::int64_t reached_ = 0;  // the last one held
};

}  // namespace ooc
