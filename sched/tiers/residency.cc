#include "sched/tiers/residency.h"

#include <algorithm>

namespace ooc {

Residency::Residency(const Plan& plan, const std::vector<Piece>& pieces, std::byte* arena)
    : plan_(plan),
      all_(pieces),
      arena_(arena),
      pass_count_(pass_count(plan)),
      pieces_(plan.tensors.size()),
      states_(pieces.size()) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    const PlannedTensor& tensor = plan.tensors[static_cast<std::size_t>(piece.tensor)];
    pieces_[static_cast<std::size_t>(piece.tensor)].push_back(static_cast<int>(i));
    const std::int64_t units = ceil_div(piece.end_block - piece.first_block, tensor.unit_blocks);
    states_[i].resize(static_cast<std::size_t>(units * tensor.layout.slice_count()),
                      State::kAbsent);
  }
}

std::size_t Residency::state_index(int piece, std::int64_t unit, std::int64_t slice) const {
  const Piece& place = all_[index(piece)];
  const PlannedTensor& tensor = plan_.tensors[static_cast<std::size_t>(place.tensor)];
  const std::int64_t at = unit - place.first_block / tensor.unit_blocks;
  return static_cast<std::size_t>(at * tensor.layout.slice_count() + slice);
}

bool Residency::is_permanent(const Piece& piece) const {
  return (piece.last_pass + 1) % pass_count_ == piece.first_pass % pass_count_;
}

void Residency::clear(int piece) {
  std::vector<State>& states = states_[index(piece)];
  const Piece& place = all_[index(piece)];
  const PlannedTensor& tensor = plan_.tensors[static_cast<std::size_t>(place.tensor)];
  const std::int64_t slices = tensor.layout.slice_count();
  const std::int64_t first_unit = place.first_block / tensor.unit_blocks;
  for (std::size_t i = 0; cleared_ && i < states.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    if (states[i] == State::kThere) cleared_(place, first_unit + at / slices, at % slices);
  }
  std::fill(states.begin(), states.end(), State::kAbsent);
}

void Residency::clear_all() {
  for (std::size_t i = 0; i < all_.size(); ++i) clear(static_cast<int>(i));
}

void Residency::begin_pass(int pass) {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const Piece& piece = all_[i];
    if (is_permanent(piece)) continue;
    if (piece.first_pass == pass || !is_alive(piece, pass)) clear(static_cast<int>(i));
  }
}

void Residency::forget() {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const bool input = plan_.tensors[static_cast<std::size_t>(all_[i].tensor)].input;
    if (!input) clear(static_cast<int>(i));
    for (State& state : states_[i]) {
      if (state == State::kComing) state = State::kAbsent;
    }
  }
}

int Residency::find(int tensor, std::int64_t block, int pass) const {
  for (const int i : pieces_[static_cast<std::size_t>(tensor)]) {
    const Piece& piece = all_[index(i)];
    if (piece.first_block <= block && block < piece.end_block && is_alive(piece, pass)) return i;
  }
  return -1;
}

RowsPlace Residency::place(int piece) const {
  const Piece& place = all_[index(piece)];
  return {arena_ + place.memory.offset, place.first_block, place.end_block, 0};
}

}  // namespace ooc
