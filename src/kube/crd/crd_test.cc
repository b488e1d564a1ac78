#include "crd/crd.h"

#include <gtest/gtest.h>

#include "codec/codec.h"

namespace holdfast::crd {
namespace {

constexpr UnixTime kNow{1767323045, 0};

struct Fixture : testing::Test {
  Arena arena;
  Value parse(const std::string& json) {
    const auto value = codec::decode_json(arena, arena.copy(json));
    EXPECT_TRUE(value) << json;
    return value ? *value : Value();
  }
  Value definition(const std::string& schema, const std::string& version_extra = "",
                   const std::string& group = "example.com") {
    return parse(
        R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"resourceVersion":"1","name":"things.)" +
        group + R"("},"spec":{"group":")" + group +
        R"(","scope":"Namespaced","names":{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":)" +
        schema + "}" + version_extra + R"(}],"conversion":{"strategy":"None"}},"status":{"storedVersions":["v1"]}})");
  }
  std::string problem(const Value& value, const Value* old = nullptr) {
    const auto result = validate_definition(value, old);
    return result ? "" : result.error().message;
  }
  std::string object_problem(const std::string& schema, const std::string& spec, const std::string& old_spec = "") {
    const auto made = Definition::make(definition(R"({"type":"object","properties":{"spec":)" + schema + "}}"));
    const std::string head =
        R"({"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t","namespace":"n","resourceVersion":"1"},"spec":)";
    const Value object = parse(head + spec + "}");
    Value old;
    if (!old_spec.empty()) old = parse(head + old_spec + "}");
    const auto result = validate_object(made->versions()[0], object, old_spec.empty() ? nullptr : &old);
    return result ? "" : result.error().message;
  }
};
using CrdTest = Fixture;

TEST_F(CrdTest, ValidDefinitionPasses) {
  EXPECT_EQ(problem(definition(R"({"type":"object","properties":{"spec":{"type":"object"}}})")), "");
}

TEST_F(CrdTest, RejectsRulesThatDoNotCompileOrCostTooMuch) {
  const std::string unknown = problem(definition(
      R"({"type":"object","properties":{"spec":{"type":"object","x-kubernetes-validations":[{"rule":"self.b > 1"}],)"
      R"("properties":{"a":{"type":"integer"}}}}})"));
  EXPECT_NE(unknown.find("x-kubernetes-validations[0].rule: Invalid value: {\"Rule\":\"self.b \\u003e 1\""),
            std::string::npos)
      << unknown;
  EXPECT_NE(unknown.find("compilation failed: ERROR: <input>:1:5: undefined field 'b'"), std::string::npos) << unknown;
  const std::string costly = problem(definition(
      R"({"type":"object","properties":{"l":{"type":"array","items":{"type":"array","items":{"type":"string"}},)"
      R"j("x-kubernetes-validations":[{"rule":"self.all(x, x.all(y, y.contains('a')))"}]}}})j"));
  EXPECT_NE(costly.find("rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x"),
            std::string::npos)
      << costly;
}

TEST_F(CrdTest, RulesAreCompiledOnlyBelowValidSchemas) {
  const std::string bad_rule = R"("x-kubernetes-validations":[{"rule":"self.nope"}])";
  const std::string bad_message = R"("x-kubernetes-validations":[{"rule":"self.nope","message":" "}])";
  const auto of = [&](const std::string& a, const std::string& b) {
    return problem(definition(R"({"type":"object","properties":{"a":{"type":"object",)" + a +
                              R"(},"b":{"type":"object","properties":{"c":{"type":"object",)" + b + R"(}},)" +
                              bad_rule + "}}}"));
  };
  // `b` has an error further down, so its rule is not compiled; that of `a` is.
  const std::string beside = of(bad_rule, bad_message);
  EXPECT_NE(beside.find("properties[a].x-kubernetes-validations[0].rule: Invalid value"), std::string::npos) << beside;
  EXPECT_NE(beside.find("properties[c].x-kubernetes-validations[0].message: Invalid value: \" \": must be non-empty"),
            std::string::npos)
      << beside;
  EXPECT_EQ(beside.find("properties[b].x-kubernetes-validations[0].rule"), std::string::npos) << beside;
}

TEST_F(CrdTest, FieldPathsAndUntypedSchemasOfRules) {
  const auto of = [&](const std::string& path) {
    return problem(
        definition(R"({"type":"object","properties":{"s":{"type":"object","properties":{"a.b":{"type":"string"},)"
                   R"("m":{"type":"object","additionalProperties":{"type":"string"}}},)"
                   R"("x-kubernetes-validations":[{"rule":"true","fieldPath":")" +
                   path + R"("}]}}})"));
  };
  EXPECT_EQ(of(".m.key"), "");
  EXPECT_EQ(of("['a.b']"), "");
  for (const std::string path : {".nope", "m", ".m.", "['a.b'", ".a.b"}) {
    const std::string found = of(path);
    EXPECT_NE(found.find("fieldPath: Invalid value: \"" + path + "\": must be a valid path"), std::string::npos)
        << found;
  }
  const std::string untyped =
      problem(definition(R"({"type":"object","properties":{"u":{"x-kubernetes-preserve-unknown-fields":true,)"
                         R"("x-kubernetes-validations":[{"rule":"true"},{"rule":"false"}]}}})"));
  EXPECT_EQ(untyped,
            "CustomResourceDefinition.apiextensions.k8s.io \"things.example.com\" is invalid: "
            "spec.validation.openAPIV3Schema.properties[u].x-kubernetes-validations: Internal error: internal error: "
            "failed to construct type information for x-kubernetes-validations rules: unable to convert structural "
            "schema to CEL declarations");
}

TEST_F(CrdTest, RulesAreEvaluatedOnObjects) {
  const std::string schema =
      R"({"type":"object","properties":{"n":{"type":"integer"},"m":{"type":"integer"}},"x-kubernetes-validations":[)"
      R"({"rule":"self.n <= self.m","message":"n must not exceed m"}]})";
  EXPECT_EQ(object_problem(schema, R"({"n":1,"m":2})"), "");
  EXPECT_EQ(object_problem(schema, R"({"n":3,"m":2})"),
            "Thing.example.com \"t\" is invalid: spec: Invalid value: n must not exceed m");
  // Errors at unchanged values are ignored.
  EXPECT_EQ(object_problem(schema, R"({"n":3,"m":2})", R"({"n":3,"m":2})"), "");
}

TEST_F(CrdTest, FailuresOfARuleBeyondALimitAreCounted) {
  const std::string schema = R"({"type":"object","properties":{"n":{"type":"array","items":{"type":"integer",)"
                             R"("x-kubernetes-validations":[{"rule":"false","message":")" +
                             std::string(1000, 'm') + R"("}]}}}})";
  std::string items = "1";
  for (int i = 0; i < 20'000; ++i) items += ",1";
  const std::string problem = object_problem(schema, R"({"n":[)" + items + "]}");
  EXPECT_LT(problem.size(), 4u << 20);
  EXPECT_NE(problem.find(" more errors"), std::string::npos);
}

TEST_F(CrdTest, RuleFailingOnUnchangedValueWarns) {
  const auto made = Definition::make(definition(
      R"({"type":"object","properties":{"spec":{"type":"object","properties":{"n":{"type":"integer"},"m":{"type":"integer",)"
      R"("x-kubernetes-validations":[{"rule":"self < 5","message":"m is too large"}]}},)"
      R"("x-kubernetes-validations":[{"rule":"self.n < 9"}]}}})"));
  using Texts = std::vector<std::string>;
  const auto warnings = [&](const std::string& spec, const std::string& old_spec) {
    const std::string head = R"({"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t"},"spec":)";
    Warnings found;
    add_rule_warnings(made->versions()[0], parse(head + spec + "}"), parse(head + old_spec + "}"), found);
    return Texts(found.texts().begin(), found.texts().end());
  };
  EXPECT_EQ(warnings(R"({"n":1,"m":7})", R"({"n":2,"m":7})"), Texts({"spec.m: Invalid value: 7: m is too large"}));
  EXPECT_EQ(warnings(R"({"n":1,"m":3})", R"({"n":2,"m":3})"), Texts());
  // For a changed value it is an error, not a warning.
  EXPECT_EQ(warnings(R"({"n":1,"m":8})", R"({"n":1,"m":7})"), Texts());
}

TEST_F(CrdTest, SchemaErrorsHaveKubernetesPaths) {
  const std::string prefix =
      "CustomResourceDefinition.apiextensions.k8s.io \"things.example.com\" is invalid: "
      "spec.validation.openAPIV3Schema.";
  const std::pair<const char*, const char*> kCases[] = {
      {R"({"type":"object","properties":{"spec":{"properties":{"a":{"type":"string"}}}}})",
       "properties[spec].type: Required value: must not be empty for specified object fields"},
      {R"({"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"string"}}}})",
       "properties[spec].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"},
      {R"({"type":"object","properties":{"spec":{"type":"array"}}})",
       "properties[spec].items: Required value: must be specified"},
      {R"({"type":"object","properties":{"l":{"type":"array","x-kubernetes-list-type":"map","items":{"type":"object","properties":{"n":{"type":"string"}}}}}})",
       "properties[l].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"},
      {R"({"type":"object","properties":{"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["n"],"items":{"type":"object","properties":{"n":{"type":"string"}}}}}})",
       "properties[l].items.properties[n].default: Required value: this property is in x-kubernetes-list-map-keys, so "
       "it must have a default or be a required property"},
      {R"({"type":"object","properties":{"m":{"type":"string","x-kubernetes-map-type":"atomic"}}})",
       "properties[m].type: Invalid value: \"string\": must be object if x-kubernetes-map-type is specified"},
      {R"({"type":"object","properties":{"a":{"type":"string","pattern":"+"}}})",
       "properties[a].pattern: Invalid value: \"+\": must be a valid regular expression, but isn't: error parsing "
       "regexp: missing argument to repetition operator: `+`"},
      {R"({"type":"object","properties":{"a":{"$ref":"#/b"}}})",
       "properties[a].$ref: Forbidden: $ref is not supported"},
      {R"({"type":"object","properties":{"a":{"type":"array","items":[{"type":"text"}]}}})", nullptr},
      {R"({"type":"object","properties":{"a":{"type":"integer","default":3,"x-kubernetes-validations":[{"rule":"self > 5"}]}}})",
       "properties[a].default: Invalid value: 3: failed rule: self > 5"},
      {R"({"type":"object","properties":{"a":{"type":"object","default":{"c":1,"b":2},"properties":{"c":{"type":"string"}}}}})",
       nullptr},
      // Defaults below additionalProperties are not checked, nor are alternatives below the root.
      {R"({"type":"object","properties":{"a":{"type":"object","additionalProperties":{"type":"string","default":1}}}})",
       ""},
      {R"({"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}},"anyOf":[{"properties":{"c":{"minLength":1}}}]}}})",
       ""},
      {R"({"type":"object","properties":{"a":{"type":"object","properties":{"x":{"type":"integer"}},"default":{"x":1,"y":2}}}})",
       "properties[a].default: Invalid value: {\"x\":1,\"y\":2}: must not have unknown fields"},
      {R"({"type":"object","properties":{"a":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"default":{"apiVersion":"v1","kind":"Pod","metadata":{"name":1}}}}})",
       "properties[a].default.metadata: Invalid value: {\"name\":1}: json: cannot unmarshal number into Go struct "
       "field "
       "ObjectMeta.name of type string"},
      {R"({"type":"object","properties":{"a":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"default":{"apiVersion":"v1"}}}})",
       "properties[a].default.kind: Required value"},
  };
  for (const auto& [schema, want] : kCases) {
    const std::string got = problem(definition(schema));
    if (want == nullptr)
      EXPECT_FALSE(got.empty()) << schema;
    else
      EXPECT_EQ(got, *want == 0 ? "" : prefix + want);
  }
}

// The causes of an error, each as "field: message", with `at` abbreviated to "~" in the paths.
std::vector<std::string> causes(const Result<Unit>& result, const std::string& at) {
  std::vector<std::string> texts;
  if (result) return texts;
  for (const Cause& cause : result.error().causes) {
    texts.push_back((cause.field.starts_with(at) ? "~" + cause.field.substr(at.size()) : cause.field) + ": " +
                    cause.message);
  }
  return texts;
}

TEST_F(CrdTest, ErrorsAreInKubernetesOrder) {
  using Texts = std::vector<std::string>;
  const auto of = [&](const std::string& schema, const std::string& extra = "") {
    return causes(validate_definition(definition(schema, extra), nullptr), "spec.validation.openAPIV3Schema");
  };
  // Structural errors come first, sorted by text, then keyword errors.
  EXPECT_EQ(of(R"({"type":"object","properties":{"b":{"nullable":true},"a":{"type":"array"},"c":{"type":"text"}}})"),
            Texts({"~.properties[a].items: Required value: must be specified",
                   "~.properties[b].type: Required value: must not be empty for specified object fields",
                   "~.properties[c].type: Unsupported value: \"text\": supported values: \"array\", \"boolean\", "
                   "\"integer\", \"number\", \"object\", \"string\""}));
  // Keywords without a structural form suppress structural errors, and their content is checked.
  EXPECT_EQ(
      of(R"({"type":"object","properties":{"a":{}},"definitions":{"d":{"type":"text"}},"dependencies":{"a":["b"]}})"),
      Texts({"~.definitions: Forbidden: definitions is not supported",
             "~.dependencies: Forbidden: dependencies is not supported",
             "~.definitions[d].type: Unsupported value: \"text\": supported values: \"array\", \"boolean\", "
             "\"integer\", \"number\", \"object\", \"string\""}));
  EXPECT_EQ(of(R"({"type":"object","$schema":"http://json-schema.org/draft-04/schema#"})"),
            Texts({"~: Invalid value: \"\": OpenAPIV3Schema 'schema' is not supported"}));
  // A default with unknown fields is still validated against the schema; maps are shown sorted.
  EXPECT_EQ(
      of(R"({"type":"object","properties":{"a":{"type":"object","default":{"y":1,"b":2},"properties":{"b":{"type":"string"}}}}})"),
      Texts({"~.properties[a].default: Invalid value: {\"b\":2,\"y\":1}: must not have unknown fields",
             "~.properties[a].default.b: Invalid value: \"integer\": b in body must be of type string: "
             "\"integer\""}));
  // Each key of a keyed list is checked.
  EXPECT_EQ(
      of(R"({"type":"object","properties":{"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["x","o","x"],)"
         R"("items":{"type":"object","required":["o"],"properties":{"o":{"type":"object"}}}}}})"),
      Texts({"~.properties[l].x-kubernetes-list-map-keys: Invalid value: [\"x\",\"o\",\"x\"]: entries must all be "
             "names of item properties",
             "~.properties[l].items.properties[o].type: Invalid value: \"object\": must be a scalar type if parent "
             "array's x-kubernetes-list-type is map",
             "~.properties[l].x-kubernetes-list-map-keys: Invalid value: [\"x\",\"o\",\"x\"]: entries must all be "
             "names of item properties",
             "~.properties[l].x-kubernetes-list-map-keys: Invalid value: [\"x\",\"o\",\"x\"]: must not contain "
             "duplicate entries"}));
  // Items are not checked if the type of the set is not array.
  EXPECT_EQ(
      of(R"({"type":"object","properties":{"l":{"type":"object","x-kubernetes-list-type":"set","items":{"type":"object"}}}})"),
      Texts({"~.properties[l].type: Invalid value: \"object\": must be array if x-kubernetes-list-type is specified"}));
}

TEST_F(CrdTest, SelectableFieldsAreResolvedInTheSchema) {
  using Texts = std::vector<std::string>;
  const auto of = [&](const std::string& fields) {
    return causes(
        validate_definition(
            definition(
                R"({"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string"}}},)"
                R"("spec":{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"number"},)"
                R"("m":{"type":"object","additionalProperties":{"type":"string"}}}}}})",
                R"(,"selectableFields":[)" + fields + "]"),
            nullptr),
        "spec.selectableFields");
  };
  const auto field = [](const std::string& path) { return R"({"jsonPath":")" + path + R"("})"; };
  EXPECT_EQ(of(field(".spec.a") + "," + field(".spec.m.key")), Texts());
  const std::pair<const char*, const char*> kPaths[] = {
      {"spec.a", "expected [ or . but got: spec"},       {".", "unexpected end of JSON path"},
      {".spec.", "unexpected end of JSON path"},         {".spec['a']", "array notation is not allowed"},
      {".spec.nope", "does not refer to a valid field"}, {".spec.a.b", "does not refer to a valid field"},
  };
  for (const auto& [path, why] : kPaths) {
    EXPECT_EQ(of(field(path)),
              Texts({"~[0].jsonPath: Invalid value: \"" + std::string(path) + "\": is an invalid path: " + why}));
  }
  const std::string type =
      "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are "
      "allowed.";
  EXPECT_EQ(
      of(field(".metadata") + "," + field(".spec.n") + "," + field(".spec.n") + ",{}"),
      Texts({"~[0].jsonPath: Invalid value: \".metadata\": must not point to fields in metadata",
             "~[0].jsonPath: Invalid value: \".metadata\": " + type,
             "~[1].jsonPath: Invalid value: \".spec.n\": " + type, "~[2].jsonPath: Invalid value: \".spec.n\": " + type,
             "~[2].jsonPath: Duplicate value: \".spec.n\"", "~[3].jsonPath: Required value"}));
}

TEST_F(CrdTest, SelectableFieldsCannotBeResolvedWithoutStructuralForm) {
  const auto found =
      causes(validate_definition(definition(R"({"type":"object","$ref":"#/a","properties":{"a":{"type":"string"}},)"
                                            R"("x-kubernetes-validations":[{"rule":"true","fieldPath":".nope"}]})",
                                            R"(,"selectableFields":[{"jsonPath":".a"}])"),
                                 nullptr),
             "spec.");
  EXPECT_EQ(found, std::vector<std::string>({"~validation.openAPIV3Schema.$ref: Forbidden: $ref is not supported",
                                             "~schema.openAPIV3Schema: Invalid value: \"\": OpenAPIV3Schema '$ref' is "
                                             "not supported"}));
}

TEST_F(CrdTest, SchemaWithStatusIsPrintedAsTheGoStruct) {
  const auto found =
      causes(validate_definition(
                 definition(R"({"type":"object","maxProperties":3})", R"(,"subresources":{"status":{}})"), nullptr),
             "spec.validation.openAPIV3Schema");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].starts_with(
      R"(~: Invalid value: {"ID":"","Schema":"","Ref":null,"Description":"","Type":"object","Nullable":false,)"))
      << found[0];
  EXPECT_NE(
      found[0].find(R"("Enum":null,"MaxProperties":3,"MinProperties":null,"Required":null,"Items":null,"AllOf":null,)"),
      std::string::npos)
      << found[0];
  EXPECT_NE(found[0].find(R"("XListType":null,"XMapType":null,"XValidations":null}: only [Description Type)"),
            std::string::npos)
      << found[0];
}

TEST_F(CrdTest, ConversionWebhookIsValidatedLikeOtherWebhooks) {
  using Texts = std::vector<std::string>;
  const auto with = [&](const std::string& conversion) {
    const Value plain = definition(R"({"type":"object"})");
    return with_member(arena, plain, "spec", with_member(arena, *plain.find("spec"), "conversion", parse(conversion)));
  };
  const auto of = [&](const std::string& client, const std::string& versions) {
    return causes(validate_definition(with(R"({"strategy":"Webhook","webhook":{"clientConfig":{)" + client +
                                           R"(},"conversionReviewVersions":)" + versions + "}}"),
                                      nullptr),
                  "spec.conversion.");
  };
  EXPECT_EQ(of(R"("service":{"name":"s","namespace":"n","port":443})", R"(["v1"])"), Texts());
  EXPECT_EQ(
      of(R"("service":{"name":"s","port":0,"path":"a//b"})", R"(["v2","v2"])"),
      Texts({"~webhookClientConfig.service.name: Required value",
             "~webhookClientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, "
             "inclusive",
             "~webhookClientConfig.service.path: Invalid value: \"a//b\": must start with a '/'",
             "~webhookClientConfig.service.path: Invalid value: \"a//b\": segment[0] may not be empty",
             "~webhookClientConfig.service.path: Invalid value: \"a//b\": segment[1] may not be empty",
             "~conversionReviewVersions[1]: Invalid value: \"v2\": duplicate version",
             "~conversionReviewVersions: Invalid value: [\"v2\",\"v2\"]: must include at least one of v1, v1beta1"}));
}

TEST_F(CrdTest, UpdateWaivesRequirementsTheStoredDefinitionDoesNotMeet) {
  const std::string_view preserve[] = {"spec", "preserveUnknownFields"};
  const auto stored = [&](const std::string& schema) {
    return with_path(arena, definition(schema), preserve, Value::boolean(true));
  };
  const Value loose = stored(R"({"type":"object","properties":{"a":{}}})");
  EXPECT_NE(problem(loose), "");
  EXPECT_EQ(problem(loose, &loose), "");
  // Extensions require a structural schema, and so does pruning.
  EXPECT_NE(
      problem(stored(R"({"type":"object","properties":{"a":{},"b":{"x-kubernetes-int-or-string":true}}})"), &loose),
      "");
  EXPECT_NE(problem(definition(R"({"type":"object","properties":{"a":{}}})"), &loose), "");
  // Non-atomic items of a set, and keys that may be absent.
  for (
      const char* list :
      {R"("x-kubernetes-list-type":"set","items":{"type":"object"})",
       R"("x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","properties":{"k":{"type":"string"}}})"}) {
    const Value old = definition(R"({"type":"object","properties":{"l":{"type":"array",)" + std::string(list) + "}}}");
    EXPECT_NE(problem(old), "") << list;
    EXPECT_EQ(problem(old, &old), "") << list;
  }
}

TEST_F(CrdTest, DeprecationWarningMustBePrintable) {
  EXPECT_EQ(
      causes(validate_definition(
                 definition(R"({"type":"object"})", R"(,"deprecated":true,"deprecationWarning":"go\tnow")"), nullptr),
             "spec.versions[0]."),
      std::vector<std::string>({"~deprecationWarning: Invalid value: \"go\\tnow\": must only contain printable UTF-8 "
                                "characters; non-printable character found at index 2"}));
}

TEST_F(CrdTest, ColumnsSharedByAllVersionsAreReportedInTheSpec) {
  EXPECT_EQ(
      problem(definition(
          R"({"type":"object"})",
          R"(,"additionalPrinterColumns":[{"name":"A","type":"text","jsonPath":"spec.a"},{"name":"","type":"string","jsonPath":".a"}])")),
      "CustomResourceDefinition.apiextensions.k8s.io \"things.example.com\" is invalid: "
      "[spec.additionalPrinterColumns[0].type: Invalid value: \"text\": must be one of "
      "boolean,date,integer,number,string, spec.additionalPrinterColumns[0].JSONPath: Invalid value: \"spec.a\": must "
      "be a simple json path starting with ., "
      "spec.additionalPrinterColumns[1].name: Required value]");
}

TEST_F(CrdTest, ProtectedGroupRequiresApproval) {
  EXPECT_EQ(
      problem(definition(R"({"type":"object"})", "", "x.k8s.io")),
      "CustomResourceDefinition.apiextensions.k8s.io \"things.x.k8s.io\" is invalid: "
      "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have "
      "approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111");
}

TEST_F(CrdTest, GroupAndPluralAreImmutable) {
  const Value old = definition(R"({"type":"object"})");
  const Value next =
      with_path(arena, old, std::vector<std::string_view>{"spec", "names", "plural"}, Value::string("others"));
  EXPECT_EQ(problem(next, &old),
            "CustomResourceDefinition.apiextensions.k8s.io \"things.example.com\" is invalid: spec.names.plural: "
            "Invalid value: \"others\": field is immutable");
}

struct ObjectCase {
  const char *name, *schema, *spec, *want;  // `want` without the common prefix.
};

TEST_F(CrdTest, ObjectErrorsMatchKubernetes) {
  const ObjectCase kCases[] = {
      {"too short", R"({"type":"object","properties":{"s":{"type":"string","minLength":3}}})", R"({"s":"ab"})",
       "spec.s: Invalid value: \"ab\": spec.s in body should be at least 3 chars long"},
      {"too long", R"({"type":"object","properties":{"s":{"type":"string","maxLength":5}}})", R"({"s":"abcdef"})",
       "spec.s: Too long: may not be more than 5 bytes"},
      {"pattern", R"({"type":"object","properties":{"p":{"type":"string","pattern":"^a+$"}}})", R"({"p":"b"})",
       "spec.p: Invalid value: \"b\": spec.p in body should match '^a+$'"},
      {"minimum", R"({"type":"object","properties":{"n":{"type":"integer","minimum":1}}})", R"({"n":0})",
       "spec.n: Invalid value: 0: spec.n in body should be greater than or equal to 1"},
      {"exclusive", R"({"type":"object","properties":{"x":{"type":"number","minimum":0,"exclusiveMinimum":true}}})",
       R"({"x":0})", "spec.x: Invalid value: 0: spec.x in body should be greater than 0"},
      {"multiple", R"({"type":"object","properties":{"m":{"type":"integer","multipleOf":5}}})", R"({"m":7})",
       "spec.m: Invalid value: 7: spec.m in body should be a multiple of 5"},
      {"enum", R"({"type":"object","properties":{"e":{"type":"string","enum":["red","green"]}}})", R"({"e":"blue"})",
       "spec.e: Unsupported value: \"blue\": supported values: \"red\", \"green\""},
      {"items", R"({"type":"object","properties":{"l":{"type":"array","minItems":1,"items":{"type":"string"}}}})",
       R"({"l":[]})", "spec.l: Invalid value: 0: spec.l in body should have at least 1 items"},
      {"many", R"({"type":"object","properties":{"l":{"type":"array","maxItems":2,"items":{"type":"string"}}}})",
       R"({"l":["a","b","c"]})", "spec.l: Too many: 3: must have at most 2 items"},
      {"type", R"({"type":"object","properties":{"n":{"type":"integer"}}})", R"({"n":"x"})",
       "spec.n: Invalid value: \"string\": spec.n in body must be of type integer: \"string\""},
      {"required", R"({"type":"object","required":["a"],"properties":{"a":{"type":"string"}}})", R"({})",
       "spec.a: Required value"},
      {"set",
       R"({"type":"object","properties":{"l":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}}})",
       R"({"l":["a","b","a"]})", "spec.l[2]: Duplicate value: \"a\""},
      {"map",
       R"({"type":"object","properties":{"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}}}})",
       R"({"l":[{"k":"a"},{"k":"a"}]})", "spec.l[1]: Duplicate value: {\"k\":\"a\"}"},
      {"a float with an integral value is an integer", R"({"type":"object","properties":{"n":{"type":"integer"}}})",
       R"({"n":2.0})", ""},
  };
  for (const ObjectCase& item : kCases) {
    SCOPED_TRACE(item.name);
    const std::string want = *item.want == 0 ? "" : std::string("Thing.example.com \"t\" is invalid: ") + item.want;
    EXPECT_EQ(object_problem(item.schema, item.spec), want);
  }
}

TEST_F(CrdTest, UnchangedValuesAreNotValidatedAgain) {
  const char* schema = R"({"type":"object","properties":{"a":{"type":"string","maxLength":3},"b":{"type":"string"}}})";
  EXPECT_EQ(object_problem(schema, R"({"a":"toolong","b":"new"})", R"({"a":"toolong","b":"old"})"), "");
  EXPECT_NE(object_problem(schema, R"({"a":"toolong2"})", R"({"a":"toolong"})"), "");
}

TEST_F(CrdTest, NamesAreAcceptedAndConflictsReported) {
  const Value wanted = definition(R"({"type":"object"})");
  const Value accepted = accept_names(arena, wanted, {}, kNow);
  EXPECT_EQ(
      codec::encode_json(*accepted.get("status", "conditions")),
      R"([{"type":"NamesAccepted","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z","reason":"NoConflicts","message":"no conflicts found"},)"
      R"({"type":"Established","status":"False","lastTransitionTime":"2026-01-02T03:04:05Z","reason":"Installing","message":"the initial names have been accepted"}])");
  const Value established = establish(arena, accepted, kNow);
  EXPECT_TRUE(has_condition(established, "Established", "True"));
  EXPECT_TRUE(accept_names(arena, established, {}, kNow).same(established));

  const Value conflict = accept_names(arena, wanted, {{"things"}, {}}, kNow);
  EXPECT_EQ(conflict.items_at("status", "conditions")[0].text_at("reason"), "PluralConflict");
  EXPECT_EQ(conflict.items_at("status", "conditions")[0].text_at("message"), "\"things\" is already in use");
  EXPECT_EQ(conflict.text_at("status", "acceptedNames", "kind"), "Thing");
}

TEST_F(CrdTest, InvalidWebhookBundleIsReportedOnce) {
  const Value conversion = parse(R"({"strategy":"Webhook","webhook":{"clientConfig":{"caBundle":"aGVsbG8="}}})");
  Value wanted = definition(R"({"type":"object"})");
  wanted = with_member(arena, wanted, "spec", with_member(arena, *wanted.find("spec"), "conversion", conversion));
  const Value told = establish(arena, accept_names(arena, wanted, {}, kNow), kNow);
  EXPECT_EQ(told.items_at("status", "conditions")[1].text_at("reason"), "InvalidCABundle");
  EXPECT_TRUE(accept_names(arena, told, {}, kNow).same(told));
  EXPECT_TRUE(establish(arena, told, kNow).same(told));
}

TEST_F(CrdTest, DefinitionYieldsResources) {
  Value written = definition(
      R"({"type":"object","properties":{"spec":{"type":"object","properties":{"replicas":{"type":"integer"}}}}})",
      R"(,"subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}},"additionalPrinterColumns":[{"name":"R","type":"integer","jsonPath":".spec.replicas"}])");
  written = establish(arena, accept_names(arena, written, {}, kNow), kNow);
  const auto made = Definition::make(written);
  ASSERT_EQ(made->versions().size(), 1u);
  const types::Resource& resource = *made->versions()[0].resource;
  EXPECT_TRUE(made->established());
  EXPECT_EQ(resource.plural, "things");
  EXPECT_EQ(resource.storage_prefix, "example.com/things");
  EXPECT_EQ(resource.columns.size(), 2u);
  ASSERT_EQ(resource.subresources.size(), 2u);
  EXPECT_EQ(resource.subresources[1].kind, "Scale");
  const Value object = parse(R"({"metadata":{"name":"t","namespace":"n"},"spec":{"replicas":3}})");
  const auto scale = scale_of(arena, *made->versions()[0].scale, object);
  ASSERT_TRUE(scale);
  EXPECT_EQ(scale->int_at_or(0, "spec", "replicas"), 3);
  EXPECT_LT(made->bytes(), 100u * 1024);
}

TEST_F(CrdTest, NonStructuralSchemaIsNotPublished) {
  for (const bool structural : {true, false}) {
    const Value written = definition(structural ? R"({"type":"object","properties":{"a":{"type":"string"}}})"
                                                : R"({"type":"object","properties":{"a":{}}})");
    const auto made = Definition::make(establish(arena, accept_names(arena, written, {}, kNow), kNow));
    const Version& version = made->versions()[0];
    EXPECT_EQ(version.published == version.schema, structural);
    EXPECT_EQ(version.published->written(arena).is_map(), structural);
  }
}

TEST_F(CrdTest, NonStructuralSchemaSetsACondition) {
  const auto condition = [&](const Value& value) {
    for (const Value& item : accept_names(arena, value, {}, kNow).items_at("status", "conditions")) {
      if (item.text_at("type") == "NonStructuralSchema")
        return std::string(item.text_at("status")) + " " + std::string(item.text_at("reason")) + " " +
               std::string(item.text_at("message"));
    }
    return std::string();
  };
  const Value loose = definition(R"({"type":"object","properties":{"b":{"type":"array"},"a":{}}})");
  const std::string at = "spec.versions[0].schema.openAPIV3Schema.properties";
  const std::string form = at + "[a].type: Required value: must not be empty for specified object fields, " + at +
                           "[b].items: Required value: must be specified";
  EXPECT_EQ(condition(loose), "True Violations [" + form + "]");
  const std::string_view preserve[] = {"spec", "preserveUnknownFields"};
  EXPECT_EQ(condition(with_path(arena, loose, preserve, Value::boolean(true))),
            "True Violations [spec.preserveUnknownFields: Invalid value: true: must be false, " + form + "]");
  // The condition disappears with a structural schema.
  const Value strict = definition(R"({"type":"object","properties":{"a":{"type":"string"}}})");
  EXPECT_EQ(condition(strict), "");
  const Value judged = accept_names(arena, loose, {}, kNow);
  EXPECT_EQ(condition(with_member(arena, judged, "spec", *strict.find("spec"))), "");
}

}  // namespace
}  // namespace holdfast::crd
