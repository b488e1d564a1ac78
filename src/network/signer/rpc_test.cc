#include "signer/rpc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::signer {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

TEST(Framing, PutsAFlagAndTheLengthInFront) {
  EXPECT_EQ(framed("abc"), std::string("\0\0\0\0\3abc", 8));
  EXPECT_EQ(framed(std::string(0x10203, 'x')).substr(0, 5), std::string("\0\0\1\2\3", 5));
  EXPECT_EQ(framed(""), std::string(5, '\0'));
}

struct ResponseCase {
  const char* name;
  int status;
  Fields headers;
  std::string body;
  Fields trailers;
  std::string code, want;  // The code of the failure; without one, the message.
};

const Fields kGrpc = {{"content-type", "application/grpc"}};
const Fields kOk = {{"grpc-status", "0"}};

const ResponseCase kResponseCases[] = {
    {"a message", 200, kGrpc, framed("abc"), kOk, "", "abc"},
    {"an empty message is one", 200, kGrpc, framed(""), kOk, "", ""},
    {"the content type may name the encoding",
     200,
     {{"content-type", "application/grpc+proto"}},
     framed("a"),
     kOk,
     "",
     "a"},
    {"a status without a message",
     200,
     {{"content-type", "application/grpc"}, {"grpc-status", "5"}, {"grpc-message", "no%20key%0Aat all"}},
     "",
     {},
     "NotFound",
     "rpc error: code = NotFound desc = no key\nat all"},
    {"a status after a message",
     200,
     kGrpc,
     framed("abc"),
     {{"grpc-status", "14"}, {"grpc-message", "100%"}},
     "Unavailable",
     "rpc error: code = Unavailable desc = 100%"},
    {"a code that nobody knows",
     200,
     kGrpc,
     "",
     {{"grpc-status", "99"}, {"grpc-message", "x"}},
     "Unknown",
     "rpc error: code = Unknown desc = code 99: x"},
    {"a status that is not a number",
     200,
     kGrpc,
     "",
     {{"grpc-status", "ok"}},
     "Unknown",
     "rpc error: code = Unknown desc = transport: malformed grpc-status: \"ok\""},
    {"no status",
     200,
     kGrpc,
     framed("abc"),
     {},
     "Internal",
     "rpc error: code = Internal desc = server closed the stream without sending trailers"},
    {"a status in front of a message does not count",
     200,
     {{"content-type", "application/grpc"}, {"grpc-status", "0"}},
     framed("abc"),
     {},
     "Internal",
     "rpc error: code = Internal desc = server closed the stream without sending trailers"},
    {"success without a message", 200, kGrpc, "", kOk, "Internal",
     "rpc error: code = Internal desc = cardinality violation: received no response message from non-server-streaming "
     "RPC"},
    {"two messages", 200, kGrpc, framed("a") + framed("b"), kOk, "Internal",
     "rpc error: code = Internal desc = cardinality violation: expected <EOF> for non server-streaming RPCs, but "
     "received another message"},
    {"a frame that is cut off", 200, kGrpc, framed("abc").substr(0, 7), kOk, "Internal",
     "rpc error: code = Internal desc = unexpected EOF"},
    {"the head of a frame that is cut off", 200, kGrpc, std::string(3, '\0'), kOk, "Internal",
     "rpc error: code = Internal desc = unexpected EOF"},
    {"a compressed message",
     200,
     {{"content-type", "application/grpc"}, {"grpc-encoding", "gzip"}},
     "\1" + framed("abc").substr(1),
     kOk,
     "Internal",
     "rpc error: code = Internal desc = grpc: Decompressor is not installed for grpc-encoding \"gzip\""},
    {"a web server",
     404,
     {{"content-type", "text/html"}},
     "<html>",
     {},
     "Unimplemented",
     "rpc error: code = Unimplemented desc = unexpected HTTP status code received from server: 404; transport: "
     "received "
     "unexpected content-type \"text/html\""},
    {"a web server that is content",
     200,
     {{"content-type", "text/html"}},
     framed("abc"),
     kOk,
     "Unknown",
     "rpc error: code = Unknown desc = unexpected HTTP status code received from server: 200; transport: received "
     "unexpected content-type \"text/html\""},
    {"a type that only begins alike",
     200,
     {{"content-type", "application/grpc-web"}},
     framed("abc"),
     kOk,
     "Unknown",
     "rpc error: code = Unknown desc = unexpected HTTP status code received from server: 200; transport: received "
     "unexpected content-type \"application/grpc-web\""},
};

TEST(Responses, AreAMessageOrTheStatus) {
  for (const ResponseCase& item : kResponseCases) {
    SCOPED_TRACE(item.name);
    net::ClientResponse response;
    response.status = item.status;
    response.headers = item.headers;
    response.body = item.body;
    response.trailers = item.trailers;
    const Outcome<std::string> message = message_of(response);
    EXPECT_EQ(message ? *message : message.error().message, item.want);
    EXPECT_EQ(message ? "" : message.error().code, item.code);
  }
}

}  // namespace
}  // namespace holdfast::signer
