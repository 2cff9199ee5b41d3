// SPDX-License-Identifier: Apache-2.0
// What the tests here use of GoogleTest, where that is not installed: for a program of one file.
#ifndef GTEST__GTEST_H_
#define GTEST__GTEST_H_

#include <cmath>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

namespace testing
{

struct Test
{
  std::string name;
  void (*run)();
};

inline std::vector<Test> & tests()
{
  static std::vector<Test> all;
  return all;
}

inline int & failures()
{
  static int count = 0;
  return count;
}

inline bool add(const char * group, const char * name, void (*run)())
{
  tests().push_back({std::string(group) + "." + name, run});
  return true;
}

template <typename One, typename Other>
bool check(
  bool holds, const char * file, int line, const char * what, const One & one,
  const Other & other)
{
  if (!holds) {
    ++failures();
    std::cout << file << ":" << line << ": " << what << ", of " << one << " and " << other
              << "\n";
  }
  return holds;
}

}  // namespace testing

#define TEST(group, name)                                                              \
  static void group##_##name();                                                        \
  static const bool is_##group##_##name = testing::add(#group, #name, group##_##name); \
  static void group##_##name()

#define GTEST_CHECKED(a, sign, b)                                                               \
  [&](const auto & one, const auto & other) {                                                   \
    return testing::check(one sign other, __FILE__, __LINE__, #a " " #sign " " #b, one, other); \
  }(a, b)

#define EXPECT_EQ(a, b) GTEST_CHECKED(a, ==, b)
#define EXPECT_NE(a, b) GTEST_CHECKED(a, !=, b)
#define EXPECT_LT(a, b) GTEST_CHECKED(a, <, b)
#define EXPECT_LE(a, b) GTEST_CHECKED(a, <=, b)
#define EXPECT_GT(a, b) GTEST_CHECKED(a, >, b)
#define EXPECT_NEAR(a, b, tolerance) EXPECT_LE(std::fabs((a) - (b)), tolerance)
#define EXPECT_TRUE(a) EXPECT_EQ(static_cast<bool>(a), true)
#define EXPECT_FALSE(a) EXPECT_EQ(static_cast<bool>(a), false)
#define ASSERT_EQ(a, b) \
  if (!EXPECT_EQ(a, b)) { return; }
#define ASSERT_LT(a, b) \
  if (!EXPECT_LT(a, b)) { return; }
#define ASSERT_TRUE(a) \
  if (!EXPECT_TRUE(a)) { return; }

int main()
{
  for (const testing::Test & test : testing::tests()) {
    const int before = testing::failures();
    try {
      test.run();
    } catch (const std::exception & error) {
      ++testing::failures();
      std::cout << error.what() << "\n";
    }
    std::cout << (testing::failures() == before ? "passed " : "FAILED ") << test.name
              << std::endl;
  }
  return testing::failures() == 0 ? 0 : 1;
}

#endif  // GTEST__GTEST_H_
