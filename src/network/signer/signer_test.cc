#include "signer/signer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <optional>

#include "base/base64.h"
#include "base/limits.h"
#include "base/task_group.h"
#include "base/thread_pool.h"
#include "signer/testing.h"

namespace holdfast::signer {
namespace {

using namespace std::chrono_literals;
using signer::testing::Babbler;
using signer::testing::FakeSigner;
using signer::testing::number_field;
using signer::testing::Reply;
using signer::testing::text_field;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kIssuer = "https://issuer";

// An RSA key, made once.
struct Key {
  EVP_PKEY* key = EVP_RSA_gen(2048);

  static const Key& get() {
    static const Key* const one = new Key;
    return *one;
  }
  std::string der() const {
    unsigned char* bytes = nullptr;
    const int length = i2d_PUBKEY(key, &bytes);
    std::string text(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
    OPENSSL_free(bytes);
    return text;
  }
  std::string sign(std::string_view text) const {
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    EVP_DigestSignInit(context, nullptr, EVP_sha256(), nullptr, key);
    size_t length = 0;
    const auto* data = reinterpret_cast<const unsigned char*>(text.data());
    EVP_DigestSign(context, nullptr, &length, data, text.size());
    std::string signature(length, '\0');
    EVP_DigestSign(context, reinterpret_cast<unsigned char*>(signature.data()), &length, data, text.size());
    EVP_MD_CTX_free(context);
    return base64url_encode(signature);
  }
};

std::string key_message(std::string_view id, std::string_view der, bool unlisted = false) {
  return text_field(1, text_field(1, id) + text_field(2, der) + (unlisted ? number_field(3, 1) : ""));
}

std::string keys_message(const std::string& keys, uint64_t refresh_seconds = 3600) {
  return keys + text_field(2, number_field(1, 1700000001)) + number_field(3, refresh_seconds);
}

// What a good signer answers; tests replace parts of it while it runs.
struct Behaviour {
  std::mutex mutex;
  std::string keys = keys_message(key_message("kid-1", Key::get().der()));
  std::string header = R"({"alg":"RS256","kid":"kid-1","typ":"JWT"})";
  std::optional<std::string> signature;
  uint64_t max_seconds = 3600;
  std::optional<Reply> instead_of_keys, instead_of_sign, instead_of_metadata;

  Reply operator()(const std::string& method, const std::string& message) {
    const std::lock_guard lock(mutex);
    if (method == "FetchKeys") return instead_of_keys.value_or(Reply{keys});
    if (method == "Metadata") return instead_of_metadata.value_or(Reply{number_field(1, max_seconds)});
    if (instead_of_sign) return *instead_of_sign;
    // Field 1 of a SignJWTRequest: a tag, a length of two bytes at most in these tests, the claims.
    const std::string claims = message.substr(static_cast<unsigned char>(message[1]) < 0x80 ? 2 : 3);
    const std::string head = base64url_encode(header);
    return Reply{text_field(1, head) + text_field(2, signature.value_or(Key::get().sign(head + "." + claims)))};
  }
};

struct World {
  explicit World(Options chosen = {}) : options(std::move(chosen)) {
    options.endpoint = endpoint;
    options.issuers = {kIssuer};
  }
  ~World() {
    if (external) block_on(loops.at(0), external->close(loops.at(0)));
    external.reset();
    std::filesystem::remove(endpoint);
  }

  void run_signer() {
    std::filesystem::remove(endpoint);
    fake.emplace(endpoint,
                 [this](const std::string& method, const std::string& message) { return behaviour(method, message); });
  }
  Result<Unit> start() {
    external = std::make_unique<ExternalSigner>(loops, background, metrics, options);
    return block_on(loops.at(0), external->start());
  }
  std::string why_not_started() {
    const Result<Unit> started = start();
    return started ? "started" : started.error().message;
  }
  // On another loop than that of the keys.
  Result<std::string> sign() {
    return block_on(loops.at(1), external->sign(claims(), loops.at(1), std::make_shared<net::Cancellation>()));
  }
  std::string why_not_signed() {
    const Result<std::string> token = sign();
    return token ? "signed" : token.error().message;
  }
  static tokens::Claims claims() {
    tokens::Claims claims;
    claims.issuer = kIssuer;
    claims.ns = "shop";
    claims.service_account = {"cart", "u-1"};
    claims.audiences = {"a"};
    claims.issued = claims.not_before = 1000;
    claims.expires = 2000;
    return claims;
  }
  void set(std::string Behaviour::* what, std::string value) {
    const std::lock_guard lock(behaviour.mutex);
    behaviour.*what = std::move(value);
  }

  static std::string new_endpoint() {
    static std::atomic<int> count{0};
    return "/tmp/holdfast-signer-test-" + std::to_string(getpid()) + "-" + std::to_string(count++) + ".sock";
  }
  const std::string endpoint = new_endpoint();
  net::Loops loops{2};
  ThreadPool background{1};
  MetricRegistry metrics;
  Options options;
  Behaviour behaviour;
  std::optional<FakeSigner> fake;
  std::unique_ptr<ExternalSigner> external;
};

TEST(ExternalSigner, SignsTokensThatItsKeysVerify) {
  World world;
  world.run_signer();
  ASSERT_EQ(world.why_not_started(), "started");
  EXPECT_EQ(world.external->max_expiration(), 3600s);
  EXPECT_THAT(world.external->keys_max_age().count(), ::testing::AllOf(::testing::Gt(3500), ::testing::Le(3600)));
  const Result<std::string> token = world.sign();
  ASSERT_TRUE(token) << token.error().message;
  const Result<tokens::Claims> back = world.external->verifier()->verify(*token, {"a"}, {1500, 0});
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, World::claims());
  const std::string shown = world.metrics.render();
  EXPECT_THAT(shown, HasSubstr("apiserver_externaljwt_sign_request_total{code=\"OK\"} 1\n"));
  EXPECT_THAT(shown, HasSubstr("apiserver_externaljwt_fetch_keys_request_total{code=\"OK\"} 1\n"));
  EXPECT_THAT(shown, HasSubstr("apiserver_externaljwt_fetch_keys_data_timestamp 1700000001\n"));
  EXPECT_THAT(shown, HasSubstr("apiserver_externaljwt_request_duration_seconds_count"
                               "{method=\"/v1.ExternalJWTSigner/Sign\",code=\"OK\"} 1\n"));
}

TEST(ExternalSigner, IsWaitedForAndMayRestart) {
  World world;
  const auto run_later = [&] {
    return std::thread([&] {
      std::this_thread::sleep_for(100ms);  // The calls that wait for it may as well begin after this.
      world.run_signer();
    });
  };
  std::thread first = run_later();
  EXPECT_EQ(world.why_not_started(), "started");
  first.join();
  EXPECT_EQ(world.why_not_signed(), "signed");
  world.fake.reset();
  std::thread second = run_later();
  EXPECT_EQ(world.why_not_signed(), "signed");
  second.join();
}

TEST(ExternalSigner, ThatDoesNotComeIsAnErrorThatNamesTheSocket) {
  World world({.keys_timeout = 200ms});
  EXPECT_EQ(world.why_not_started(),
            "while setting up external-jwt-signer: while initially filling key cache: while performing initial cache "
            "fill: while fetching token verification keys: while getting externally supported jwt signing keys: rpc "
            "error: code = DeadlineExceeded desc = latest balancer error: connection error: desc = \"transport: Error "
            "while dialing: dial unix " +
                world.endpoint + ": connect: no such file or directory\"");
}

TEST(ExternalSigner, ThatHangsHasADeadline) {
  World keys({.keys_timeout = 100ms});
  keys.behaviour.instead_of_keys = Reply{.never = true};
  keys.run_signer();
  EXPECT_THAT(keys.why_not_started(), HasSubstr("code = DeadlineExceeded desc = context deadline exceeded"));

  World metadata({.metadata_timeout = 100ms});
  metadata.behaviour.instead_of_metadata = Reply{.never = true};
  metadata.run_signer();
  EXPECT_EQ(
      metadata.why_not_started(),
      "while setting up external-jwt-signer: rpc error: code = DeadlineExceeded desc = context deadline exceeded");
}

TEST(ExternalSigner, ASignatureIsNotWaitedForForever) {
  World world({.sign_timeout = 100ms});
  world.behaviour.instead_of_sign = Reply{.never = true};
  world.run_signer();
  ASSERT_EQ(world.why_not_started(), "started");
  EXPECT_EQ(world.why_not_signed(),
            "while signing jwt: rpc error: code = DeadlineExceeded desc = context deadline exceeded");
  EXPECT_THAT(world.metrics.render(),
              HasSubstr("apiserver_externaljwt_sign_request_total{code=\"DeadlineExceeded\"} 1\n"));
}

TEST(ExternalSigner, WaitingForItCanBeCancelled) {
  World world;
  world.behaviour.instead_of_keys = Reply{.never = true};
  world.run_signer();
  std::thread canceller([&] {
    while (world.fake->count("FetchKeys") == 0) std::this_thread::sleep_for(1ms);
    world.external->cancel();
  });
  EXPECT_THAT(world.why_not_started(), HasSubstr("code = Canceled"));
  canceller.join();
}

TEST(ExternalSigner, ACallerThatLeavesEndsItsCall) {
  World world;
  world.behaviour.instead_of_sign = Reply{.never = true};
  world.run_signer();
  ASSERT_EQ(world.why_not_started(), "started");
  const auto cancellation = std::make_shared<net::Cancellation>();
  std::thread leaver([&] {
    while (world.fake->count("Sign") == 0) std::this_thread::sleep_for(1ms);
    world.loops.at(1).post([&] { cancellation->cancel(); });
  });
  const Result<std::string> token =
      block_on(world.loops.at(1), world.external->sign(World::claims(), world.loops.at(1), cancellation));
  leaver.join();
  ASSERT_FALSE(token);
  EXPECT_EQ(token.error().message, "while signing jwt: rpc error: code = Canceled desc = context canceled");
}

TEST(ExternalSigner, MustSupportTokensOfTenMinutes) {
  World world;
  world.behaviour.max_seconds = 599;
  world.run_signer();
  EXPECT_EQ(world.why_not_started(),
            "max token life supported by external-jwt-signer (599s) is less than acceptable (min 600s)");
}

struct StartCase {
  const char* name;
  Reply reply;
  std::string want;  // At the end.
};

TEST(ExternalSigner, DoesNotStartWithKeysThatCannotBeUsed) {
  const StartCase kCases[] = {
      {"a status",
       {.status = 7, .explanation = "go%20away"},
       "keys: rpc error: code = PermissionDenied desc = go away"},
      {"no message", {.message = "\xff"}, "proto: cannot parse invalid wire-format data"},
      {"no keys", {keys_message("")}, "while fetching token verification keys: found no keys"},
      {"no key",
       {keys_message(key_message("k", "nonsense"))},
       "while parsing external public keys: key \"k\" is not a public key in PKIX form"},
      {"a key and more",
       {keys_message(key_message("k", Key::get().der() + "x"))},
       "while parsing external public keys: key \"k\" is not a public key in PKIX form"},
      {"no hint", {keys_message(key_message("k", Key::get().der()), 0)}, "found invalid refresh hint (0s)"},
  };
  for (const StartCase& item : kCases) {
    SCOPED_TRACE(item.name);
    World world;
    world.behaviour.instead_of_keys = item.reply;
    world.run_signer();
    EXPECT_THAT(world.why_not_started(), ::testing::EndsWith(item.want));
  }
}

TEST(ExternalSigner, SomethingElseOnTheSocketIsAnError) {
  for (const char* bytes : {"HTTP/1.1 400 Bad Request\r\n\r\n", "\0\0\0\0\0\0", ""}) {
    World world({.keys_timeout = 1000ms});
    Babbler babbler(world.endpoint, bytes);
    EXPECT_THAT(world.why_not_started(), HasSubstr("rpc error: code = "));
  }
}

TEST(ExternalSigner, AnAnswerBeyondTheLimitIsAnError) {
  World world;
  world.behaviour.keys = keys_message(key_message("k", std::string(limits::kSignerAnswerBytes, 'x')));
  world.run_signer();
  EXPECT_THAT(world.why_not_started(),
              HasSubstr("code = ResourceExhausted desc = grpc: received message larger than max (4194304)"));
}

TEST(ExternalSigner, HeadersAndSignaturesAreChecked) {
  World world;
  world.behaviour.keys =
      keys_message(key_message("kid-1", Key::get().der()) + key_message("old", Key::get().der(), true));
  world.run_signer();
  ASSERT_EQ(world.why_not_started(), "started");
  world.set(&Behaviour::header, R"({"alg":"none","kid":"kid-1","typ":"JWT"})");
  EXPECT_EQ(world.why_not_signed(), "while validating header: bad signing algorithm \"none\"");
  world.set(&Behaviour::header, R"({"alg":"RS256","kid":"old","typ":"JWT"})");
  EXPECT_EQ(world.why_not_signed(),
            "while validating header: key used for signing JWT (kid: old) is excluded from OIDC discovery docs");
  world.set(&Behaviour::header, R"({"alg":"RS256","kid":"kid-1","typ":"JWT"})");
  for (const auto& [signature, want] :
       {std::pair("", "empty signature returned"), std::pair("a.b", "the signature returned is not base64url"),
        std::pair("YQ\n", "the signature returned is not base64url")}) {
    {
      const std::lock_guard lock(world.behaviour.mutex);
      world.behaviour.signature = signature;
    }
    EXPECT_EQ(world.why_not_signed(), want);
  }
  EXPECT_THAT(world.metrics.render(),
              HasSubstr("apiserver_externaljwt_sign_request_total{code=\"unknown-non-grpc\"} 5\n"));
  {
    const std::lock_guard lock(world.behaviour.mutex);
    world.behaviour.instead_of_sign = Reply{.message = "\x80"};
  }
  EXPECT_THAT(world.why_not_signed(), StartsWith("while signing jwt: rpc error: code = Internal desc = grpc: failed"));
}

TEST(ExternalSigner, AKeyThatIsNotKnownIsAskedFor) {
  World world;
  world.run_signer();
  ASSERT_EQ(world.why_not_started(), "started");
  world.set(&Behaviour::header, R"({"alg":"RS256","kid":"kid-2","typ":"JWT"})");
  EXPECT_EQ(world.why_not_signed(), "signed") << "As in kube-apiserver: the signer may list the key later.";
  EXPECT_EQ(world.fake->count("FetchKeys"), 2);
  EXPECT_FALSE(world.external->verifier()->has_key("kid-2"));
  world.set(&Behaviour::keys, keys_message(key_message("kid-2", Key::get().der())));
  const Result<std::string> token = world.sign();
  ASSERT_TRUE(token);
  EXPECT_TRUE(world.external->verifier()->verify(*token, {"a"}, {1500, 0}));
  EXPECT_FALSE(world.external->verifier()->has_key("kid-1"));
  EXPECT_EQ(world.fake->count("FetchKeys"), 3);
  EXPECT_EQ(world.why_not_signed(), "signed");
  EXPECT_EQ(world.fake->count("FetchKeys"), 3) << "It is known now.";
}

TEST(ExternalSigner, KeysAreFetchedAgainWhenTheirTimeIsOver) {
  World world({.retry_interval = 10ms});
  world.behaviour.keys = keys_message(key_message("kid-1", Key::get().der()), 1);
  world.run_signer();
  ASSERT_EQ(world.why_not_started(), "started");
  const auto first = world.external->verifier();
  {
    const std::lock_guard lock(world.behaviour.mutex);
    world.behaviour.instead_of_keys = Reply{.status = 13};
  }
  while (world.fake->count("FetchKeys") < 3) std::this_thread::sleep_for(5ms);
  EXPECT_EQ(world.external->verifier(), first) << "Failures change nothing.";
  {
    const std::lock_guard lock(world.behaviour.mutex);
    world.behaviour.instead_of_keys.reset();
    world.behaviour.keys = keys_message(key_message("kid-2", Key::get().der()), 1);
  }
  while (!world.external->verifier()->has_key("kid-2")) std::this_thread::sleep_for(5ms);
}

Task<void> ask_for_keys(World& world, std::shared_ptr<net::Cancellation> cancellation, std::atomic<size_t>& answered) {
  co_await world.external->fetch_keys(world.loops.at(1), std::move(cancellation));
  ++answered;
}

TEST(ExternalSigner, ManyWhoAskForKeysShareACall) {
  World world({.fetch_pause = 300ms});
  world.run_signer();
  ASSERT_EQ(world.why_not_started(), "started");
  std::atomic<size_t> answered{0};
  std::vector<Task<void>> all;
  all.reserve(80);
  for (int i = 0; i < 80; ++i) all.push_back(ask_for_keys(world, nullptr, answered));
  const auto begin = std::chrono::steady_clock::now();
  block_on(world.loops.at(1), when_all(world.loops.at(1), std::move(all)));
  EXPECT_EQ(answered, 80u);
  EXPECT_EQ(world.fake->count("FetchKeys"), 2);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 100ms) << "The pause between two calls was kept.";
}

TEST(ExternalSigner, NoMoreThanTheLimitWaitForKeys) {
  World world;
  world.run_signer();
  ASSERT_EQ(world.why_not_started(), "started");
  {
    const std::lock_guard lock(world.behaviour.mutex);
    world.behaviour.instead_of_keys = Reply{.never = true};
  }
  constexpr size_t kTooMany = 7;
  std::atomic<size_t> answered{0};
  std::vector<Task<void>> all;
  all.reserve(limits::kWaitingForKeys + kTooMany);
  const auto cancellation = std::make_shared<net::Cancellation>();
  for (size_t i = 0; i < limits::kWaitingForKeys + kTooMany; ++i) {
    all.push_back(ask_for_keys(world, cancellation, answered));
  }
  std::thread leaver([&] {
    while (answered < kTooMany || world.fake->count("FetchKeys") < 2) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(answered, kTooMany);
    world.loops.at(1).post([&] { cancellation->cancel(); });
  });
  block_on(world.loops.at(1), when_all(world.loops.at(1), std::move(all)));
  leaver.join();
  EXPECT_EQ(world.fake->count("FetchKeys"), 2);
}

TEST(ExternalSigner, ThoseWhoWaitForKeysMayLeave) {
  World world;
  world.run_signer();
  ASSERT_EQ(world.why_not_started(), "started");
  {
    const std::lock_guard lock(world.behaviour.mutex);
    world.behaviour.instead_of_keys = Reply{.never = true};
  }
  const auto cancellation = std::make_shared<net::Cancellation>();
  std::thread leaver([&] {
    while (world.fake->count("FetchKeys") < 2) std::this_thread::sleep_for(1ms);
    world.loops.at(1).post([&] { cancellation->cancel(); });
  });
  block_on(world.loops.at(1), world.external->fetch_keys(world.loops.at(1), cancellation));
  leaver.join();
  block_on(world.loops.at(1), world.external->fetch_keys(world.loops.at(1), cancellation));  // It has left already.
}

TEST(Endpoint, IsAPathOrAnAbstractName) {
  for (const char* good : {"/run/signer.sock", "relative.sock", "@signer", "@a.b-c_1.D"}) {
    EXPECT_TRUE(check_endpoint(good)) << good;
  }
  for (const char* bad : {"@", "@a..b", "@.a", "@a.", "@a b", "@a/b"}) {
    const Result<Unit> checked = check_endpoint(bad);
    ASSERT_FALSE(checked) << bad;
    EXPECT_EQ(checked.error().message, "invalid value \"" + std::string(bad) +
                                           "\" passed for `--service-account-signing-endpoint`, when prefixed with @ "
                                           "must be a valid abstract socket name");
  }
  EXPECT_FALSE(check_endpoint("/" + std::string(107, 'x')));
}

TEST(Endpoint, AnAbstractOneIsReached) {
  World world;
  world.options.endpoint = "@holdfast-signer-test-" + std::to_string(getpid());
  world.fake.emplace(world.options.endpoint, [&](const std::string& method, const std::string& message) {
    return world.behaviour(method, message);
  });
  EXPECT_EQ(world.why_not_started(), "started");
}

}  // namespace
}  // namespace holdfast::signer
