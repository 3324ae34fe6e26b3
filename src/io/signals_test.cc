#include "io/signals.h"

#include <csignal>

#include <gtest/gtest.h>
#include <poll.h>

namespace io {
namespace {

bool IsReadable(const Signals& signals) {
  pollfd fd{signals.fd(), POLLIN, 0};
  return poll(&fd, 1, 0) == 1;
}

TEST(Signals, ComeToWhoeverLooks) {
  const Signals signals({SIGUSR1, SIGUSR2});
  EXPECT_FALSE(IsReadable(signals));
  EXPECT_EQ(signals.Take(), std::vector<int>());
  raise(SIGUSR2);
  EXPECT_TRUE(IsReadable(signals));
  EXPECT_EQ(signals.Take(), std::vector{SIGUSR2});
  EXPECT_FALSE(IsReadable(signals));
}

TEST(Signals, ThatAreIgnoredStayIgnored) {
  signal(SIGUSR1, SIG_IGN);
  EXPECT_TRUE(IsIgnored(SIGUSR1));
  EXPECT_FALSE(IsIgnored(SIGWINCH));  // without effect by default is not the same
  const Signals signals({SIGUSR1, SIGUSR2});
  raise(SIGUSR1);
  raise(SIGUSR2);
  EXPECT_EQ(signals.Take(), std::vector{SIGUSR2});
  signal(SIGUSR1, SIG_DFL);
}

TEST(Signals, OfNoneNeverCome) { EXPECT_EQ(Signals().Take(), std::vector<int>()); }

}  // namespace
}  // namespace io
