// Items that come in one after the other while earlier ones are worked on: the reads of one use of
// a pass. An item is loaded into a slot of the use's slots, unless it has a place of its own.
//
//   absent -> coming -> there -> released
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "sched/stream/slots.h"
#include "sched/workers/driver.h"

namespace ooc {

class ItemStream;

// An item on its way: what it waits for before it is there. Under the driver's lock.
class ComingItem {
 public:
  ComingItem(ItemStream& stream, std::int64_t item) : stream_(stream), item_(item) {}

  // The completion of a read. A worker then calls `verify_and_decode`, unless it is empty, while
  // other reads of the item are still under way.
  BlockCompletion read(std::function<void()> verify_and_decode);
  // By a worker, of what needs no read.
  void verify_and_decode(std::function<void()> verify_and_decode);

 private:
  ItemStream& stream_;
  std::int64_t item_;
};

// What the items of a stream are.
class ItemLoader {
 public:
  virtual ~ItemLoader() = default;
  virtual std::int64_t count() const = 0;
  // Where an item lies by itself; null: it takes a slot.
  virtual std::byte* place(std::int64_t item) const = 0;
  // Whether it can't be loaded yet: an earlier item is bringing all of it, its rows are still on
  // their way to storage, or others still lie in its place.
  virtual bool must_wait(std::int64_t item) const = 0;
  // Submits the reads of what isn't there yet into `data`, as `coming` is told.
  // Under the driver's lock.
  virtual void load(std::int64_t item, std::byte* data, ComingItem& coming) = 0;
  // Under the lock: when all that load() told of is there; whether the rest is too, which another
  // stream may have asked for; and when nobody uses the item any more.
  virtual void arrived(std::int64_t item) = 0;
  virtual bool complete(std::int64_t item) const = 0;
  virtual void released(std::int64_t item) = 0;
  // Whether another device takes it from here; then, once it is there, until `passed_on` is called.
  virtual bool passes_on(std::int64_t) const { return false; }
  virtual void offer(std::int64_t, const std::byte*, BlockCompletion) {}
};

// All of it under the driver's lock; advance() by the driving thread.
class ItemStream {
 public:
  // Of those with a place of their own, twice as many are asked for ahead as are used at once.
  ItemStream(Driver& driver, std::unique_ptr<ItemLoader> loader, Slots slots,
             std::int64_t at_once = 1);

  // Loads the next item, if there is room for it and it is time.
  bool advance();
  bool ready(std::int64_t item) const;
  std::byte* data(std::int64_t item) const { return at(item).data; }
  // Before its first use: it is given back by so many release(), at once if there are none.
  void hold(std::int64_t item, std::int64_t uses);
  void release(std::int64_t item);
  // Whether all items have been there, and been given back.
  bool is_done() const { return next_ == loader_->count() && items_.empty(); }
  ItemLoader& loader() const { return *loader_; }

 private:
  friend class ComingItem;
  struct Item {
    std::byte* data = nullptr;
    std::byte* slot = nullptr;
    std::int64_t pending = 0;  // reads, and what follows them
    std::int64_t uses = 0;     // that are held
    bool held = false;
    bool passing_on = false;  // to another device
    bool was_read = false;    // not at hand before
    bool there = false;
  };
  Item& at(std::int64_t item) { return items_.at(item); }
  const Item& at(std::int64_t item) const { return items_.at(item); }
  void load(std::int64_t item);
  void verify_and_decode(std::int64_t item, std::function<void()> verify_and_decode);
  void on_loaded(std::int64_t item);
  void free_if_done(std::int64_t item);

  Driver& driver_;
  std::unique_ptr<ItemLoader> loader_;
  std::unordered_map<std::int64_t, Item> items_;  // loaded or held, and not released
  Slots slots_;
  std::int64_t ahead_;
  std::int64_t next_ = 0;     // to be loaded
  std::int64_t reached_ = 0;  // the last one held
};

}  // namespace ooc
