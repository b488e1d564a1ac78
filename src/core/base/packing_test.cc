#include "base/packing.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "base/thread_pool.h"

namespace holdfast {
namespace {

std::string sample(int i) {
  std::string text;
  for (int line = 0; line < 20; ++line) text += "field-" + std::to_string(line * 7919) + ": the same in every one;";
  return text + " unique-" + std::to_string(i);
}

std::shared_ptr<const Dictionary> trained() {
  std::vector<std::string> texts;
  for (int i = 0; i < 100; ++i) texts.push_back(sample(i));
  std::vector<std::string_view> views(texts.begin(), texts.end());
  return Dictionary::train(views, 16 << 10);
}

TEST(DictionaryTest, RoundTripsInAFractionOfTheBytes) {
  const auto dictionary = trained();
  ASSERT_NE(dictionary, nullptr);
  for (int i = 1000; i < 1100; ++i) {
    const std::string plain = sample(i);
    const std::string packed(dictionary->pack(plain));
    EXPECT_LT(packed.size() * 20, plain.size());
    std::string back(plain.size(), '\0');
    ASSERT_TRUE(dictionary->unpack(packed, back.data(), back.size()));
    EXPECT_EQ(back, plain);
  }
  EXPECT_LT(dictionary->expected_ratio(), 0.05);
  EXPECT_GT(dictionary->bytes(), 0u);
}

TEST(DictionaryTest, TextThatDoesNotGetSmallerIsNotPacked) {
  EXPECT_EQ(trained()->pack("x"), "");
  EXPECT_EQ(pack_without_dictionary("x"), "");
}

TEST(DictionaryTest, BytesThatAreNotAFrameAreRejected) {
  const auto dictionary = trained();
  const std::string plain = sample(7);
  const std::string packed(dictionary->pack(plain));
  std::string back(plain.size(), '\0');
  EXPECT_FALSE(dictionary->unpack("not a frame at all", back.data(), back.size()));
  EXPECT_FALSE(dictionary->unpack(std::string_view(packed).substr(0, packed.size() / 2), back.data(), back.size()));
  EXPECT_FALSE(dictionary->unpack(packed, back.data(), back.size() - 1));
}

TEST(DictionaryTest, WithoutSamplesThereIsNoDictionary) { EXPECT_EQ(Dictionary::train({}, 1000), nullptr); }

TEST(ThreadPoolTest, RunsAllPostedWorkBeforeItIsDestroyed) {
  std::atomic<int> ran{0};
  {
    ThreadPool pool(3);
    for (int i = 0; i < 1000; ++i) pool.post([&] { ++ran; });
  }
  EXPECT_EQ(ran, 1000);
}

}  // namespace
}  // namespace holdfast
