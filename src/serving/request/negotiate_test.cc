#include "request/negotiate.h"

#include <gtest/gtest.h>

namespace holdfast::request {
namespace {

std::string outcome(std::string_view accept, Offer offer = {}, Gates gates = {},
                    AcceptRule rule = AcceptRule::Lenient) {
  Result<Accepted> accepted = negotiate({.accept = accept, .rule = rule}, offer, gates);
  if (!accepted) return accepted.error().message;
  std::string text(media_type(accepted->format));
  if (accepted->form == Form::Table) text += " table";
  if (accepted->form == Form::PartialMetadata) text += " metadata";
  if (accepted->form == Form::PartialMetadataList) text += " metadata-list";
  if (accepted->pretty) text += " pretty";
  if (accepted->ownership == Ownership::Omitted) text += " omitted";
  if (accepted->ownership == Ownership::V1) text += " v1";
  if (accepted->ownership == Ownership::V2) text += " v2";
  for (const std::string& path : accepted->drop_paths) text += " drop:" + path;
  return text;
}

TEST(NegotiateTest, FirstSatisfiableClauseWins) {
  EXPECT_EQ(outcome(""), "application/json");
  EXPECT_EQ(outcome("application/vnd.kubernetes.protobuf,application/json"), "application/vnd.kubernetes.protobuf");
  EXPECT_EQ(outcome("*/*"), "application/json");
  EXPECT_EQ(outcome("text/html, application/yaml;q=0.9"), "application/yaml");
  EXPECT_EQ(outcome("application/json;q=0.1,application/cbor"), "application/cbor");
  EXPECT_EQ(outcome("*/*,application/yaml;q=0.5"), "application/yaml");
  EXPECT_EQ(outcome("application/json;as=Table;v=v1;g=meta.k8s.io,application/json"), "application/json table");
  EXPECT_EQ(outcome("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", {.table = false}),
            "application/json");
  EXPECT_EQ(outcome("application/vnd.kubernetes.protobuf", {.protobuf_objects = false}),
            "only the following media types are accepted: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf, application/cbor");
  EXPECT_EQ(outcome("application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
                    {.protobuf_objects = false}),
            "application/vnd.kubernetes.protobuf metadata");
  EXPECT_EQ(outcome("application/json;pretty=1;whatever=x;broken"), "application/json pretty");
}

TEST(NegotiateTest, YamlCannotBeStreamed) {
  Result<Accepted> accepted = negotiate({.accept = "application/yaml"}, {}, Gates());
  ASSERT_TRUE(accepted);
  EXPECT_EQ(check_streams(*accepted, Gates()).error().message,
            "only the following media types are accepted: application/json;stream=watch, "
            "application/vnd.kubernetes.protobuf;stream=watch, application/cbor-seq");
}

TEST(NegotiateTest, AnySpellingOmitsManagedFields) {
  EXPECT_EQ(outcome("application/json;drop=metadata.managedFields"), "application/json omitted");
  EXPECT_EQ(outcome("application/json;drop=status+metadata.managedFields"), "application/json omitted");
  EXPECT_EQ(outcome("application/json;mf=none"), "application/json omitted");
  EXPECT_EQ(outcome("application/json;mf=v2"), "application/json v2");
  EXPECT_EQ(outcome("application/json;mf=v2;drop=metadata.managedFields"), "application/json omitted");
  EXPECT_EQ(outcome("application/json;mf=maybe"), "application/json");
  EXPECT_EQ(outcome("application/json;drop="), "application/json");
  // Only the parameters of the winning clause count.
  EXPECT_EQ(outcome("text/html;drop=metadata.managedFields,application/json"), "application/json");
  Result<Accepted> query =
      negotiate({.accept = "", .show_managed_fields = "false", .has_show_managed_fields = true}, {}, Gates());
  EXPECT_EQ(query->ownership, Ownership::Omitted);
}

TEST(NegotiateTest, ParametersFollowTheMediaTypeGrammar) {
  // Names are case-insensitive; values are not.
  EXPECT_EQ(outcome("application/json;DROP=metadata.managedFields"), "application/json omitted");
  EXPECT_EQ(outcome("application/json;Mf=none"), "application/json omitted");
  EXPECT_EQ(outcome("application/json;drop=METADATA.managedFields"), "application/json");
  EXPECT_EQ(outcome("application/json;AS=Table;G=meta.k8s.io;V=v1"), "application/json table");
  EXPECT_EQ(outcome("application/yaml;Q=0.5,application/cbor;q=0.7"), "application/cbor");
  // Quoted values may contain separators.
  EXPECT_EQ(outcome(R"(application/json;drop="metadata.managedFields")"), "application/json omitted");
  EXPECT_EQ(outcome(R"(application/json;drop="metadata.\managedFields")"), "application/json omitted");
  EXPECT_EQ(outcome(R"(application/json;as="Table";g="meta.k8s.io";v="v1")"), "application/json table");
  EXPECT_EQ(outcome(R"(application/json;x="a,b;mf=none";y=1)"), "application/json");
  EXPECT_EQ(outcome(R"(application/json;x="\";mf=none",application/yaml)"), "application/json");
  EXPECT_EQ(outcome(R"(application/json;x="open;mf=none)"), "application/json omitted");
  // Whitespace, including tabs, is optional.
  EXPECT_EQ(outcome("application/json\t;\tdrop\t=\tmetadata.managedFields\t, text/plain"), "application/json omitted");
  EXPECT_EQ(outcome("application/json ; as = Table ;\tg=meta.k8s.io; v=v1"), "application/json table");
  EXPECT_TRUE(check_accept_route("application/json\t;x=\"a,b\"", false, Gates()));
  // As in Kubernetes, the last of a repeated parameter wins.
  EXPECT_EQ(outcome("application/json;mf=none;mf=v1"), "application/json v1");
  EXPECT_EQ(outcome("application/json;drop=metadata.managedFields;Drop=spec"), "application/json");
  EXPECT_EQ(outcome("application/json;as=Table;AS=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
            "application/json metadata");
}

TEST(NegotiateTest, QuoteWithoutAnEndIsAnOrdinaryCharacter) {
  EXPECT_EQ(outcome(R"(text/html;a="x,application/yaml)"), "application/yaml");
  EXPECT_EQ(outcome(R"(text/html;a="x\",b\",application/yaml)"), "application/yaml");
  EXPECT_EQ(outcome(R"(text/html;a="x\",b",application/yaml;pretty="1")"), "application/yaml pretty");
  EXPECT_EQ(outcome(R"(application/yaml;a="x\";pretty=1)"), "application/yaml pretty");
}

TEST(NegotiateTest, OnlyKnownParametersAreKept) {
  const std::vector<AcceptClause> clauses = parse_accept("a/b;x=1;PRETTY=0;y=\"2\";pretty=1");
  ASSERT_EQ(clauses.size(), 1u);
  ASSERT_EQ(clauses[0].parameters.size(), 1u);
  EXPECT_EQ(clauses[0].parameter("pretty"), "1");
}

TEST(NegotiateTest, SpellingsAreUnknownParametersWithoutTheirGates) {
  const Gates off = Gates().with(Gate::ManagedFieldsOptOut, false);
  EXPECT_EQ(outcome("application/json;drop=metadata.managedFields", {}, off), "application/json");
  EXPECT_EQ(outcome("application/json;mf=none", {}, off), "application/json");
  EXPECT_EQ(outcome("application/json;mf=v2", {}, Gates().with(Gate::FieldsV2, false)), "application/json");
  const Gates any = Gates().with(Gate::DropAnyField, true);
  EXPECT_EQ(outcome("application/json;drop=spec.x+status", {}, any), "application/json drop:spec.x drop:status");
  EXPECT_EQ(outcome("application/json;drop=spec.x", {.reads = false}, any), "application/json");
  EXPECT_EQ(outcome("application/json;drop=a+b+c+d+e+f+g+h+i", {}, any),
            "application/json drop:a drop:b drop:c drop:d drop:e drop:f drop:g drop:h");
}

struct DropCase {
  const char* accept;
  const char* want;  // Null: nothing matches.
};

// As recorded from Kubernetes 1.38.
constexpr DropCase kKubernetesDrops[] = {
    {"application/json;drop=metadata.managedFields", "application/json omitted"},
    {"application/json ; drop = metadata.managedFields ", "application/json omitted"},
    {"application/json;drop=metadata.managedFields;drop=metadata.managedFields", "application/json omitted"},
    {"application/json;drop=spec;drop=metadata.managedFields", "application/json omitted"},
    {"application/json;drop=metadata.managedFields;drop=", "application/json omitted"},
    {"application/json;drop=;drop=metadata.managedFields", "application/json omitted"},
    {"application/json;drop=metadata.managedFields,spec", "application/json omitted"},
    {"application/json;drop=", "application/json"},
    {"application/json;drop", "application/json"},
    {"application/json;drop=metadata.managedFields=1", "application/json"},
    {"application/json;DROP=metadata.managedFields", "application/json"},
    {"application/json;\tdrop=metadata.managedFields", "application/json"},
    {"application/json;mf=none", "application/json"},
    {"application/json;mf=v2", "application/json"},
    {"application/json;drop=metadata.managedFields;drop=spec", nullptr},
    {"application/json;drop=spec", nullptr},
    {"application/json;drop=*", nullptr},
    {"application/json;drop=managedFields", nullptr},
    {"application/json;drop=METADATA.MANAGEDFIELDS", nullptr},
    {"application/json;drop=\"metadata.managedFields\"", nullptr},
    {"application/json;drop=\"\"", nullptr},
    {"application/json;drop=metadata.managedFields+spec", nullptr},
    {"application/json;drop=+metadata.managedFields", nullptr},
    {"application/json;drop=metadata.managedFields+metadata.managedFields", nullptr},
    {"*/*;drop=spec", nullptr},
    {"application/*;drop=spec", nullptr},
    {"application/json;drop=spec, application/json", "application/json"},
    {"application/json;drop=spec, application/json;drop=metadata.managedFields", "application/json omitted"},
    {"application/json;drop=spec;q=0.9, application/yaml;q=0.8", "application/yaml"},
    {"application/yaml;drop=spec, application/cbor;drop=spec, application/json;drop=metadata.managedFields",
     "application/json omitted"},
    {"application/json;as=Table;v=v1;g=meta.k8s.io;drop=spec, application/json", "application/json"},
    {"application/json;drop=metadata.managedFields, application/json", "application/json omitted"},
    {"application/json, application/json;drop=metadata.managedFields", "application/json"},
};

TEST(NegotiateTest, KubernetesRuleForDropIsExact) {
  const Gates off = Gates().with(Gate::ManagedFieldsOptOut, false), any = Gates().with(Gate::DropAnyField, true);
  for (const DropCase& c : kKubernetesDrops) {
    const std::string refused =
        "only the following media types are accepted: application/json, application/yaml, "
        "application/vnd.kubernetes.protobuf, application/cbor";
    for (const Gates& gates : {Gates(), any}) {
      EXPECT_EQ(outcome(c.accept, {}, gates, AcceptRule::Kubernetes), c.want == nullptr ? refused : c.want) << c.accept;
    }
    // With the gate off the parameter has no meaning.
    EXPECT_EQ(outcome(c.accept, {}, off, AcceptRule::Kubernetes).find("omitted"), std::string::npos) << c.accept;
    EXPECT_NE(outcome(c.accept, {}, off, AcceptRule::Kubernetes), refused) << c.accept;
  }
  Result<Accepted> query = negotiate(
      {.accept = "", .rule = AcceptRule::Kubernetes, .show_managed_fields = "false", .has_show_managed_fields = true},
      {}, Gates());
  EXPECT_EQ(query->ownership, Ownership::AsIs);
  // An error's own encoding cannot be asked for in such a clause either.
  const Accepted error =
      negotiate_error({.accept = "application/yaml;drop=spec", .rule = AcceptRule::Kubernetes}, Gates());
  EXPECT_TRUE(error.format == Format::Json && error.pretty);
  Result<PageForm> page =
      negotiate_page({.accept = "text/plain;drop=spec", .rule = AcceptRule::Kubernetes}, "Statusz", Gates());
  EXPECT_FALSE(page);
}

TEST(NegotiateTest, ErrorsFallBackToIndentedJson) {
  EXPECT_TRUE(negotiate_error({.accept = "text/html"}, Gates()).pretty);
  EXPECT_TRUE(negotiate_error({.accept = "application/json;as=Table;v=v1;g=meta.k8s.io"}, Gates()).pretty);
  EXPECT_EQ(negotiate_error({.accept = "application/yaml"}, Gates()).format, Format::Yaml);
}

TEST(NegotiateTest, CborIsAnUnsupportedTypeWithoutItsGate) {
  const Gates off = Gates().with(Gate::CBORServingAndStorage, false);
  const std::string served = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
  EXPECT_EQ(outcome("application/cbor", {}, off), "only the following media types are accepted: " + served);
  EXPECT_EQ(outcome("application/cbor,application/yaml;q=0.5", {}, off), "application/yaml");
  EXPECT_EQ(outcome("*/*", {}, off), "application/json");
  const Accepted error = negotiate_error({.accept = "application/cbor"}, off);
  EXPECT_TRUE(error.format == Format::Json && error.pretty);
  EXPECT_EQ(check_streams({.format = Format::Yaml}, off).error().message,
            "only the following media types are accepted: application/json;stream=watch, "
            "application/vnd.kubernetes.protobuf;stream=watch");
  EXPECT_EQ(check_accept_route("application/cbor", false, off).error().message,
            "406: Not Acceptable\n\nAvailable representations: " + served);
  EXPECT_EQ(check_accept_route("application/cbor-seq", true, off).error().message,
            "406: Not Acceptable\n\nAvailable representations: " + served +
                ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch");
  EXPECT_EQ(body_format("application/cbor", off).error().message,
            "the body of the request was in an unknown format - accepted media types include: " + served);
  EXPECT_EQ(patch_type("application/apply-patch+cbor", false, off).error().message, "415: Unsupported Media Type");
  EXPECT_EQ(patch_type("application/apply-patch+cbor", true, off).error().message,
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml");
  EXPECT_EQ(negotiate_page({.accept = "application/cbor;as=Statusz;g=config.k8s.io;v=v1beta1"}, "Statusz", off)
                .error()
                .message,
            "only the following media types are accepted: application/json, application/yaml, text/plain");
}

TEST(NegotiateTest, PatchTypesAreMatchedExactly) {
  EXPECT_EQ(*patch_type("application/merge-patch+json; charset=utf-8", false, Gates()), PatchType::Merge);
  EXPECT_EQ(patch_type("application/json", false, Gates()).error().message, "415: Unsupported Media Type");
  EXPECT_FALSE(patch_type("application/strategic-merge-patch+json", true, Gates()).ok());
}

}  // namespace
}  // namespace holdfast::request
