#include "bin/cli/progress.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "bin/cli/text.h"
#include "storage/base/closest.h"

namespace ooc::cli {
namespace {

struct Fixture {
  std::vector<std::string> written;
  double now = 100;
  std::size_t columns = 120;

  Progress::Output output(bool terminal, bool silent = false) {
    Progress::Output result;
    result.write = [this](std::string_view text) { written.emplace_back(text); };
    result.seconds = [this] { return now; };
    result.terminal = terminal;
    result.columns = [this] { return columns; };
    result.silent = silent;
    return result;
  }
};

ProgressUpdate epochs(std::int64_t done) {
  return {"training", "epochs", static_cast<double>(done), 200, done << 28, "loss 0.5"};
}

}  // namespace

TEST_CASE("progress: elsewhere than on a terminal a line every few seconds") {
  Fixture fixture;
  Progress progress(fixture.output(false));
  for (int tenth = 0; tenth <= 120; ++tenth) {
    fixture.now = 100 + tenth / 10.0;
    progress.update(epochs(tenth));
  }
  progress.finish();
  REQUIRE(fixture.written.size() == 2);
  CHECK(fixture.written[0] ==
        "training 50/200 epochs, 10/s, 12.5 GiB at 2.5 GiB/s, 15 s left, loss 0.5\n");
}

TEST_CASE("progress: on a terminal a bar is drawn in place and taken away") {
  Fixture fixture;
  Progress progress(fixture.output(true));
  for (int tenth = 0; tenth <= 10; ++tenth) {
    fixture.now = 100 + tenth * 0.125;
    progress.update(epochs(tenth * 10));
  }
  REQUIRE(fixture.written.size() == 10);
  CHECK(fixture.written.back() ==
        "\r\x1b[Ktraining [============            ] 100/200 epochs, 80/s, 25 GiB at 20 GiB/s, "
        "1 s left, loss 0.5");
  progress.finish();
  progress.finish();
  REQUIRE(fixture.written.size() == 11);
  CHECK(fixture.written.back() == "\r\x1b[K");
}

TEST_CASE("progress: a line is shorter than the terminal is wide") {
  Fixture fixture;
  Progress progress(fixture.output(true));
  progress.update(epochs(0));
  const auto drawn = [&](std::size_t columns) {
    fixture.columns = columns;
    fixture.now += 1;
    progress.update(epochs(100));
    const std::string line = fixture.written.back().substr(4);
    CHECK(line.size() < columns);
    return line;
  };
  CHECK(drawn(200).size() < 100);
  CHECK(drawn(80).starts_with("training ["));  // the bar takes what is left
  CHECK(drawn(80).ends_with("left, loss 0.5"));
  CHECK(drawn(80).find(" at ") != std::string::npos);
  CHECK(drawn(60).find(" at ") == std::string::npos);  // then bytes go
  CHECK(drawn(60).ends_with("left, loss 0.5"));
  CHECK(drawn(20) == "training 100/200 ep");
  CHECK(drawn(1).empty());
}

TEST_CASE("progress: silent means silent") {
  Fixture fixture;
  {
    Progress progress(fixture.output(true, true));
    progress.update(epochs(1));
    fixture.now += 60;
    progress.update(epochs(2));
  }
  CHECK(fixture.written.empty());
}

TEST_CASE("progress: another activity starts its own rate; an unknown total has no time left") {
  Fixture fixture;
  Progress progress(fixture.output(false));
  progress.update(epochs(0));
  fixture.now += 1000;
  progress.update({"sorting", "edges", 0, 0, 0, ""});
  fixture.now += 10;
  progress.update({"sorting", "edges", 50'000'000, 0, 0, ""});
  REQUIRE(fixture.written.size() == 1);
  CHECK(fixture.written[0] == "sorting 50000000 edges, 5.0 M/s\n");
}

TEST_CASE("progress: what was done before does not count in the rate") {
  Fixture fixture;
  Progress progress(fixture.output(false));
  progress.update({"training", "epochs", 100, 200, 0, ""});
  fixture.now += 10;
  progress.update({"training", "epochs", 150, 200, 0, ""});
  REQUIRE(fixture.written.size() == 1);
  CHECK(fixture.written[0] == "training 150/200 epochs, 5.0/s, 10 s left\n");
}

TEST_CASE("progress: without a unit only the share counts") {
  Fixture fixture;
  Progress progress(fixture.output(false));
  const auto report = progress.callback();
  report("sorting", 0, 0.5);
  fixture.now += 10;
  report("sorting", 0.125, 0.5);
  REQUIRE(fixture.written.size() == 1);
  CHECK(fixture.written[0] == "sorting 25 %, 30 s left\n");
}

TEST_CASE("text: durations, alternatives and slips of the pen") {
  CHECK(format_duration(0.4) == "0 s");
  CHECK(format_duration(59.6) == "1:00 min");
  CHECK(format_duration(3725) == "1:02:05 h");
  CHECK(join_alternatives({"a"}) == "a");
  CHECK(join_alternatives({"a", "b", "c"}) == "a, b or c");
  CHECK(closest("--hiden", {"--heads", "--hidden"}) == "--hidden");
  CHECK(closest("gnc", {"gat", "gcn"}) == "gcn");  // a swap is one slip
  CHECK(closest("--zzzzzzzz", {"--heads", "--hidden"}).empty());
}

TEST_CASE("text: a message is one line of UTF-8 whatever it quotes") {
  CHECK(printable("a\nb\tc\x7f") == "a b c ");
  CHECK(printable("grün → 数 😀") == "grün → 数 😀");
  CHECK(printable("\xff\xc3") == "??");
  CHECK(printable("\xe2\x86x\xc0\x80") == "??x??");
}

}  // namespace ooc::cli
