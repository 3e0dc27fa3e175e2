#include "sched/stream/item_stream.h"

#include <algorithm>
#include <utility>

namespace ooc {
namespace {

constexpr std::int64_t kLeastAhead = 8;

}  // namespace

ItemStream::ItemStream(Driver& driver, std::unique_ptr<ItemLoader> loader, Slots slots,
                       std::int64_t at_once)
    : driver_(driver),
      loader_(std::move(loader)),
      slots_(std::move(slots)),
      ahead_(std::max({kLeastAhead, 2 * at_once, slots_.count()})) {}

bool ItemStream::advance() {
  if (next_ == loader_->count()) return false;
  std::byte* place = loader_->place(next_);
  if (place != nullptr ? next_ > reached_ + ahead_ : !slots_.has_one()) return false;
  if (loader_->must_wait(next_)) return false;
  Item& item = items_[next_];
  if (place == nullptr) item.slot = slots_.take();
  item.data = place != nullptr ? place : item.slot;
  load(next_++);
  return true;
}

void ItemStream::load(std::int64_t index) {
  Item& item = at(index);
  item.pending = 1;  // this call
  item.passing_on = loader_->passes_on(index);
  ComingItem coming(*this, index);
  loader_->load(index, item.data, coming);
  on_loaded(index);
}

BlockCompletion ComingItem::read(std::function<void()> verify_and_decode) {
  ItemStream& stream = stream_;
  ++stream.at(item_).pending;
  stream.at(item_).was_read = true;
  return stream.driver_.expect(
      [&stream, item = item_, verify_and_decode = std::move(verify_and_decode)] {
        if (!verify_and_decode) return stream.on_loaded(item);
        stream.verify_and_decode(item, verify_and_decode);
      });
}

void ComingItem::verify_and_decode(std::function<void()> verify_and_decode) {
  ++stream_.at(item_).pending;
  stream_.verify_and_decode(item_, std::move(verify_and_decode));
}

// Others wait for it, the tasks in the queue for none.
void ItemStream::verify_and_decode(std::int64_t index, std::function<void()> verify_and_decode) {
  driver_.run(
      std::move(verify_and_decode), [this, index] { on_loaded(index); }, Turn::kNext);
}

void ItemStream::on_loaded(std::int64_t index) {
  Item& item = at(index);
  if (--item.pending > 0) return;
  loader_->arrived(index);
  item.there = true;
  if (item.passing_on) {
    loader_->offer(index, item.data, driver_.expect([this, index] {
      at(index).passing_on = false;
      free_if_done(index);
    }));
  }
  // With a place of its own it may let others be asked for.
  if (item.slot == nullptr && item.was_read) driver_.wake();
  free_if_done(index);
}

bool ItemStream::ready(std::int64_t item) const {
  const auto found = items_.find(item);
  return found != items_.end() && found->second.there && loader_->complete(item);
}

void ItemStream::hold(std::int64_t item, std::int64_t uses) {
  reached_ = std::max(reached_, item);
  items_[item].uses = uses;
  items_[item].held = true;
  if (uses == 0) free_if_done(item);
}

void ItemStream::release(std::int64_t item) {
  --at(item).uses;
  free_if_done(item);
}

// What is on its way is passed on first.
void ItemStream::free_if_done(std::int64_t index) {
  Item& item = at(index);
  if (!item.held || item.uses > 0 || item.passing_on || !item.there) return;
  if (item.slot != nullptr) {
    slots_.give_back(item.slot);
    driver_.wake();
  }
  items_.erase(index);
  loader_->released(index);
}

}  // namespace ooc
