#include "render/status.h"

#include <gtest/gtest.h>

#include "base/api_error.h"
#include "codec/codec.h"

namespace holdfast::render {
namespace {

class StatusTest : public ::testing::Test {
 protected:
  static std::string text(const Value& status) { return codec::encode_json(status); }

  Arena arena;
};

TEST_F(StatusTest, EachReasonHasItsCodeAndName) {
  const struct {
    Reason reason;
    int code;
    std::string_view name;
  } cases[] = {
      {Reason::BadRequest, 400, "BadRequest"},
      {Reason::Unauthorized, 401, "Unauthorized"},
      {Reason::Forbidden, 403, "Forbidden"},
      {Reason::NotFound, 404, "NotFound"},
      {Reason::MethodNotAllowed, 405, "MethodNotAllowed"},
      {Reason::NotAcceptable, 406, "NotAcceptable"},
      {Reason::AlreadyExists, 409, "AlreadyExists"},
      {Reason::Conflict, 409, "Conflict"},
      {Reason::Gone, 410, "Gone"},
      {Reason::Expired, 410, "Expired"},
      {Reason::RequestEntityTooLarge, 413, "RequestEntityTooLarge"},
      {Reason::UnsupportedMediaType, 415, "UnsupportedMediaType"},
      {Reason::Invalid, 422, "Invalid"},
      {Reason::TooManyRequests, 429, "TooManyRequests"},
      {Reason::InternalError, 500, "InternalError"},
      {Reason::ServerTimeout, 500, "ServerTimeout"},
      {Reason::StoreReadError, 500, "StorageReadError"},
      {Reason::Unknown, 500, ""},
      {Reason::ServiceUnavailable, 503, "ServiceUnavailable"},
      {Reason::Timeout, 504, "Timeout"},
  };
  for (const auto& one : cases) {
    const Error error{one.reason, "why"};
    EXPECT_EQ(http_code(error), one.code) << one.name;
    const Value status = status_of(arena, error);
    EXPECT_EQ(status.int_at_or(0, "code"), one.code) << one.name;
    EXPECT_EQ(status.text_at("reason"), one.name);
    EXPECT_EQ(status.find("reason") == nullptr, one.name.empty());
  }
}

TEST_F(StatusTest, MembersAreInTheOrderOfGo) {
  Error error{Reason::Invalid, "it is wrong"};
  error.details = ErrorDetails{.name = "a", .group = "apps", .kind = "Deployment", .uid = "u"};
  error.causes = {{"FieldValueInvalid", "too big", "spec.replicas"},
                  {"FieldValueRequired", "missing", "spec.selector"}};
  EXPECT_EQ(
      text(status_of(arena, error)),
      R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"it is wrong","reason":"Invalid",)"
      R"("details":{"name":"a","group":"apps","kind":"Deployment","uid":"u","causes":[)"
      R"({"reason":"FieldValueInvalid","message":"too big","field":"spec.replicas"},)"
      R"({"reason":"FieldValueRequired","message":"missing","field":"spec.selector"}]},"code":422})");
}

TEST_F(StatusTest, CodeAndReasonCanBeOverridden) {
  Error error{Reason::Forbidden, "no"};
  error.code = 418;
  EXPECT_EQ(
      text(status_of(arena, error, "Teapot")),
      R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no","reason":"Teapot","code":418})");
}

TEST_F(StatusTest, ExpiredListTellsWhereToContinue) {
  Error error{Reason::Expired, "too old"};
  error.continue_token = "next";
  EXPECT_EQ(
      text(status_of(arena, error)),
      R"({"kind":"Status","apiVersion":"v1","metadata":{"continue":"next"},"status":"Failure","message":"too old",)"
      R"("reason":"Expired","code":410})");
}

TEST_F(StatusTest, RetryIsPartOfTheDetails) {
  Error error{Reason::TooManyRequests, "busy"};
  error.retry_after_seconds = 3;
  EXPECT_EQ(text(status_of(arena, error)),
            R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"busy",)"
            R"("reason":"TooManyRequests","details":{"retryAfterSeconds":3},"code":429})");
}

// As NewInternalError writes it, once: errors that have been through it already carry their cause.
TEST_F(StatusTest, InternalErrorsArePrefixedOnce) {
  const Error plain{Reason::InternalError, "boom"};
  const std::string want =
      R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Internal error occurred: boom",)"
      R"("reason":"InternalError","details":{"causes":[{"message":"boom"}]},"code":500})";
  EXPECT_EQ(text(status_of(arena, plain)), want);
  EXPECT_EQ(text(status_of(arena, internal("boom"))), want);
}

TEST_F(StatusTest, DetailsOfTheRouterAreEmpty) {
  EXPECT_EQ(
      text(status_of(arena, route_not_found())),
      R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server could not find the )"
      R"(requested resource","reason":"NotFound","details":{},"code":404})");
  EXPECT_EQ(http_code(route_method_not_allowed()), 405);
}

TEST_F(StatusTest, SuccessHasDetailsOnlyAfterADeletion) {
  EXPECT_EQ(text(success_status(arena)), R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"})");
  EXPECT_EQ(
      text(deleted_status(arena, "apps", "deployments", "a", "u")),
      R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"a","group":"apps",)"
      R"("kind":"deployments","uid":"u"}})");
  EXPECT_EQ(text(unread_deleted_status(arena, "deployments", "a")),
            R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"a",)"
            R"("kind":"deployments"},"code":200})");
}

}  // namespace
}  // namespace holdfast::render
