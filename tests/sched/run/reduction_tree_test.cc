#include "sched/run/reduction_tree.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <latch>
#include <random>
#include <thread>
#include <vector>

#include "kernels/device/cpu_backend.h"
#include "sched/workers/concurrency.h"

using namespace ooc;

namespace {

// Values whose float sum depends on the order of adding.
float leaf_value(std::int64_t leaf) {
  return 1.0f / static_cast<float>(3 + leaf * 7 % 101) * (leaf % 3 == 0 ? 1e6f : 1.0f);
}

// The fixed tree's sum, by recursion: halves of powers of two, left first.
float tree_sum(std::int64_t begin, std::int64_t count) {
  if (count == 1) return leaf_value(begin);
  std::int64_t left = 1;
  while (left * 2 < count) left *= 2;
  return tree_sum(begin, left) + tree_sum(begin + left, count - left);
}

// With memory for as many partials as leaves and the result, or for fewer.
class Tree {
 public:
  explicit Tree(std::int64_t leaves) : Tree(leaves, leaves + 2) {}
  Tree(std::int64_t leaves, std::int64_t partials)
      : memory_(static_cast<std::size_t>(partials) * kPartialBytes, std::byte{0x5a}),
        tree_(*backend_, DType::kF32, 3, leaves,
              {memory_.data(), partials, std::int64_t{kPartialBytes}}) {}
  ReductionTree& operator*() { return tree_; }
  ReductionTree* operator->() { return &tree_; }

  void add_leaf(std::int64_t leaf) {
    std::byte* partial = tree_.take();
    auto* values = reinterpret_cast<float*>(partial);
    CHECK(values[0] == 0.0f);
    values[0] += leaf_value(leaf);
    tree_.add(leaf, partial);
  }
  // Partials that were ever taken: those that are given back are taken first.
  std::int64_t touched() const {
    std::int64_t count = 0;
    for (std::size_t at = 0; at < memory_.size(); at += kPartialBytes) {
      count += memory_[at] != std::byte{0x5a};
    }
    return count;
  }
  float result() const { return reinterpret_cast<const float*>(tree_.result())[0]; }

 private:
  static constexpr std::size_t kPartialBytes = 64;
  std::unique_ptr<Backend> backend_ = make_cpu_backend();
  std::vector<std::byte> memory_;
  ReductionTree tree_;
};

}  // namespace

TEST_CASE("reduction_tree: the sum is the fixed tree's, whatever order leaves come in") {
  for (const std::int64_t leaves : {1, 2, 3, 5, 8, 13, 64, 100}) {
    Tree tree(leaves);
    std::vector<std::int64_t> order(static_cast<std::size_t>(leaves));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
    for (unsigned round = 0; round < 4; ++round) {
      std::shuffle(order.begin(), order.end(), std::mt19937(round));
      for (const std::int64_t leaf : order) tree.add_leaf(leaf);
      INFO(leaves << " leaves, round " << round);
      CHECK(tree.result() == tree_sum(0, leaves));
    }
  }
}

TEST_CASE("reduction_tree: the sum is the same from many threads") {
  constexpr std::int64_t kLeaves = 2000;
  Tree tree(kLeaves);
  std::atomic<std::int64_t> next{0};
  std::latch all_threads(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      all_threads.arrive_and_wait();
      for (std::int64_t leaf; (leaf = next++) < kLeaves;) {
        std::byte* partial = tree->take();
        reinterpret_cast<float*>(partial)[0] = leaf_value(leaf);
        tree->add(leaf, partial);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(tree.result() == tree_sum(0, kLeaves));
}

TEST_CASE("reduction_tree: reset forgets an unfinished round") {
  Tree tree(4);
  tree.add_leaf(0);
  tree.add_leaf(2);
  tree->reset();
  for (std::int64_t leaf = 0; leaf < 4; ++leaf) tree.add_leaf(leaf);
  CHECK(tree.result() == tree_sum(0, 4));
}

TEST_CASE("reduction_tree: no more partials are alive than most_partials() says") {
  std::mt19937 random(5);
  std::int64_t slack = 0;
  for (int round = 0; round < 400; ++round) {
    const std::int64_t leaves = 1 + static_cast<std::int64_t>(random() % 300);
    const std::int64_t workers = 1 + static_cast<std::int64_t>(random() % 9);
    const std::int64_t window = 2 + static_cast<std::int64_t>(random() % 60);
    const std::int64_t most = most_partials(leaves, workers, window);
    Tree tree(leaves, most);  // stops where it has too few
    for (int turn = 0; turn < 2; ++turn) {
      // Begun and not added. Which one is next to be added: by rounds any, or one near the end, so
      // that the first ones stay away as long as the window lets them.
      std::vector<std::pair<std::int64_t, std::byte*>> begun;
      std::int64_t next = 0;
      const auto room = [&] {
        if (next == leaves || static_cast<std::int64_t>(begun.size()) == workers) return false;
        return begun.empty() || next - begun.front().first < window;
      };
      while (next < leaves || !begun.empty()) {
        while (room()) begun.emplace_back(next++, tree->take());
        const std::size_t back = random() % (round % 2 == 0 ? begun.size() : 1);
        const auto at = begun.end() - 1 - static_cast<std::ptrdiff_t>(back);
        tree->add(at->first, at->second);
        begun.erase(at);
      }
    }
    const std::int64_t peak = tree.touched();
    INFO(leaves << " leaves, " << workers << " workers, window " << window);
    CHECK(peak <= most);
    slack = std::max(slack, most - peak);
  }
  CHECK(slack <= 40);  // no idle promise
}
