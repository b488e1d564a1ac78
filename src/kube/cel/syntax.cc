// CEL's grammar as a state network, and ANTLR's error recovery for it (DefaultErrorStrategy, and ParserATNSimulator for
// alternatives that one token cannot distinguish).
#include "cel/syntax.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace holdfast::cel {
namespace {

// --- Grammar ---

using Tokens = uint64_t;                         // One bit per Token.
constexpr Tokens kRuleEnds = uint64_t{1} << 63;  // In addition to tokens: the rule may end here.

constexpr Tokens bit(Token token) { return uint64_t{1} << static_cast<unsigned>(token); }

enum Rule : uint8_t {
  kStart,
  kExpr,
  kOr,
  kAnd,
  kRelation,
  kCalc,
  kUnary,
  kMember,
  kPrimary,
  kExprList,
  kListInit,
  kFieldInitializerList,
  kOptField,
  kMapInitializerList,
  kEscapeIdent,
  kOptExpr,
  kLiteral,
  kRules,
};

// Part of a rule.
struct Part {
  enum Kind : uint8_t { kTokens, kRule, kPrecedence, kSequence, kChoice, kOptional, kStar, kPlus };
  Kind kind;
  Tokens tokens = 0;
  Rule rule = kStart;
  int precedence = 0;  // Precedence with which a rule is called, or of this part.
  std::vector<Part> parts = {};
  // Set when the network is built.
  int state = -1;  // The parser's state when it reaches this part.
  int back = -1;   // For a loop: the state after each iteration.
};

Part token(Token t) { return {.kind = Part::kTokens, .tokens = bit(t)}; }
Part one_of(std::initializer_list<Token> all) {
  Part part{.kind = Part::kTokens};
  for (const Token t : all) part.tokens |= bit(t);
  return part;
}
Part rule(Rule r, int precedence = 0) { return {.kind = Part::kRule, .rule = r, .precedence = precedence}; }
Part precedence(int level) { return {.kind = Part::kPrecedence, .precedence = level}; }
Part sequence(std::vector<Part> parts) { return {.kind = Part::kSequence, .parts = std::move(parts)}; }
Part choice(std::vector<Part> parts) { return {.kind = Part::kChoice, .parts = std::move(parts)}; }
Part optional(Part part) { return {.kind = Part::kOptional, .parts = {std::move(part)}}; }
Part star(Part part) { return {.kind = Part::kStar, .parts = {std::move(part)}}; }
Part plus(Part part) { return {.kind = Part::kPlus, .parts = {std::move(part)}}; }

std::vector<Part> grammar() {
  using enum Token;
  std::vector<Part> rules(kRules);
  rules[kStart] = sequence({rule(kExpr), token(Eof)});
  rules[kExpr] = sequence({rule(kOr), optional(sequence({token(Question), rule(kOr), token(Colon), rule(kExpr)}))});
  rules[kOr] = sequence({rule(kAnd), star(sequence({token(Or), rule(kAnd)}))});
  rules[kAnd] = sequence({rule(kRelation), star(sequence({token(And), rule(kRelation)}))});
  rules[kRelation] =
      sequence({rule(kCalc),
                star(sequence({precedence(1), one_of({Less, LessEquals, GreaterEquals, Greater, Equals, NotEquals, In}),
                               rule(kRelation, 2)}))});
  rules[kCalc] =
      sequence({rule(kUnary), star(choice({sequence({precedence(2), one_of({Star, Slash, Percent}), rule(kCalc, 3)}),
                                           sequence({precedence(1), one_of({Plus, Minus}), rule(kCalc, 2)})}))});
  rules[kUnary] = choice(
      {rule(kMember), sequence({plus(token(Not)), rule(kMember)}), sequence({plus(token(Minus)), rule(kMember)})});
  const Part arguments = sequence({token(LeftParen), optional(rule(kExprList)), token(RightParen)});
  rules[kMember] =
      sequence({rule(kPrimary),
                star(choice({sequence({precedence(3), token(Dot), optional(token(Question)), rule(kEscapeIdent)}),
                             sequence({precedence(2), token(Dot), token(Identifier), arguments}),
                             sequence({precedence(1), token(LeftBracket), optional(token(Question)), rule(kExpr),
                                       token(RightBracket)})}))});
  rules[kPrimary] = choice(
      {sequence({optional(token(Dot)), token(Identifier)}),
       sequence({optional(token(Dot)), token(Identifier), arguments}),
       sequence({token(LeftParen), rule(kExpr), token(RightParen)}),
       sequence({token(LeftBracket), optional(rule(kListInit)), optional(token(Comma)), token(RightBracket)}),
       sequence({token(LeftBrace), optional(rule(kMapInitializerList)), optional(token(Comma)), token(RightBrace)}),
       sequence({optional(token(Dot)), token(Identifier), star(sequence({token(Dot), token(Identifier)})),
                 token(LeftBrace), optional(rule(kFieldInitializerList)), optional(token(Comma)), token(RightBrace)}),
       rule(kLiteral)});
  rules[kExprList] = sequence({rule(kExpr), star(sequence({token(Comma), rule(kExpr)}))});
  rules[kListInit] = sequence({rule(kOptExpr), star(sequence({token(Comma), rule(kOptExpr)}))});
  rules[kFieldInitializerList] = sequence({rule(kOptField), token(Colon), rule(kExpr),
                                           star(sequence({token(Comma), rule(kOptField), token(Colon), rule(kExpr)}))});
  rules[kOptField] = sequence({optional(token(Question)), rule(kEscapeIdent)});
  rules[kMapInitializerList] = sequence({rule(kOptExpr), token(Colon), rule(kExpr),
                                         star(sequence({token(Comma), rule(kOptExpr), token(Colon), rule(kExpr)}))});
  rules[kEscapeIdent] = choice({token(Identifier), token(EscapedIdentifier)});
  rules[kOptExpr] = sequence({optional(token(Question)), rule(kExpr)});
  rules[kLiteral] = choice({sequence({optional(token(Minus)), token(Int)}), token(Uint),
                            sequence({optional(token(Minus)), token(Float)}), token(String), token(Bytes), token(True),
                            token(False), token(Null)});
  return rules;
}

// --- Network ---

struct Step {
  enum Kind : uint8_t { kNothing, kTokens, kRule, kPrecedence };
  Kind kind = kNothing;
  int target = -1;  // For a rule: where the caller continues.
  Tokens tokens = 0;
  Rule rule = kStart;
  int precedence = 0;
};

struct State {
  enum Kind : uint8_t { kBasic, kDecision, kLoopBack, kRuleEnd };
  Kind kind = kBasic;
  Rule rule = kStart;
  std::vector<Step> steps = {};
  Tokens next = 0;  // Tokens that may come next within the rule.
};

class Network {
 public:
  Network() : rules_(grammar()) {
    for (int r = 0; r < kRules; ++r) {
      const auto rule = static_cast<Rule>(r);
      ends_[r] = add(State::kRuleEnd, rule);
      starts_[r] = add(State::kBasic, rule);
      const auto [entry, exit] = build(rules_[r], rule);
      connect(starts_[r], entry);
      connect(exit, ends_[r]);
    }
    for (size_t s = 0; s < states_.size(); ++s) {
      for (const Step& step : states_[s].steps) {
        if (step.kind == Step::kRule) callers_[step.rule].push_back(static_cast<int>(s));
      }
    }
    for (int r = kRules - 1; r >= 0; --r) states_[starts_[r]].next = look(starts_[r]);
    for (size_t s = 0; s < states_.size(); ++s) states_[s].next = look(static_cast<int>(s));
  }

  const State& at(int state) const { return states_[state]; }
  const Part& rule(Rule r) const { return rules_[r]; }
  int start(Rule r) const { return starts_[r]; }
  // States in which the rule is called.
  const std::vector<int>& callers(Rule r) const { return callers_[r]; }
  // Where the rule called in this state returns to.
  int follow(int state) const { return states_[state].steps[0].target; }

 private:
  using Ends = std::pair<int, int>;

  int add(State::Kind kind, Rule rule) {
    states_.push_back({.kind = kind, .rule = rule});
    return static_cast<int>(states_.size()) - 1;
  }
  void connect(int from, int to) { states_[from].steps.push_back({.target = to}); }

  Ends build(Part& part, Rule rule) {
    const bool decides = part.kind == Part::kChoice || part.kind == Part::kOptional || part.kind == Part::kStar ||
                         part.kind == Part::kPlus;
    if (part.kind == Part::kSequence) {
      Ends all = build(part.parts[0], rule);
      for (size_t i = 1; i < part.parts.size(); ++i) {
        const Ends next = build(part.parts[i], rule);
        connect(all.second, next.first);
        all.second = next.second;
      }
      return all;
    }
    const int entry = add(decides ? State::kDecision : State::kBasic, rule);
    const int exit = add(State::kBasic, rule);
    part.state = entry;
    switch (part.kind) {
      case Part::kTokens:
        states_[entry].steps.push_back({.kind = Step::kTokens, .target = exit, .tokens = part.tokens});
        break;
      case Part::kRule:
        states_[entry].steps.push_back(
            {.kind = Step::kRule, .target = exit, .rule = part.rule, .precedence = part.precedence});
        break;
      case Part::kPrecedence:
        states_[entry].steps.push_back({.kind = Step::kPrecedence, .target = exit, .precedence = part.precedence});
        break;
      case Part::kSequence:
        break;
      case Part::kChoice:
      case Part::kOptional:
        for (Part& alternative : part.parts) {
          const Ends ends = build(alternative, rule);
          connect(entry, ends.first);
          connect(ends.second, exit);
        }
        if (part.kind == Part::kOptional) connect(entry, exit);
        break;
      case Part::kStar:
      case Part::kPlus: {
        const Ends body = build(part.parts[0], rule);
        part.back = add(State::kLoopBack, rule);
        connect(entry, body.first);
        if (part.kind == Part::kStar) connect(entry, exit);
        connect(body.second, part.back);
        connect(part.back, body.first);
        connect(part.back, exit);
        break;
      }
    }
    return {entry, exit};
  }

  // No rule matches the empty input, and none is left-recursive.
  Tokens look(int from) const {
    Tokens found = 0;
    std::set<int> seen;
    std::vector<int> open{from};
    while (!open.empty()) {
      const int s = open.back();
      open.pop_back();
      if (!seen.insert(s).second) continue;
      if (states_[s].kind == State::kRuleEnd) found |= kRuleEnds;
      for (const Step& step : states_[s].steps) {
        if (step.kind == Step::kTokens) {
          found |= step.tokens;
        } else if (step.kind == Step::kRule) {
          const int start = starts_[step.rule];
          found |= states_[start].next != 0 ? states_[start].next : look(start);
        } else {
          open.push_back(step.target);
        }
      }
    }
    return found;
  }

  std::vector<Part> rules_;
  std::vector<State> states_;
  std::array<int, kRules> starts_{}, ends_{};
  std::array<std::vector<int>, kRules> callers_;
};

const Network& network() {
  static const Network made;
  return made;
}

// --- Recovery ---

class Recognizer {
 public:
  Recognizer(std::string_view text, std::span<const Lexeme> tokens, Issues& issues)
      : text_(text), tokens_(tokens), issues_(issues) {}

  std::optional<std::vector<Lexeme>> run() {
    try {
      call(kStart, 0);
    } catch (const RecoveryAborted&) {
      return std::nullopt;
    }
    if (abandoned_) return std::nullopt;
    return std::move(repaired_);
  }

 private:
  static constexpr int kMaxDepth = 250, kMaxRecoveries = 30, kMaxPassedOver = 256;
  static constexpr size_t kMaxLookSteps = 4'000'000;  // For all predictions together.

  struct RecoveryAborted {};
  struct Frame {
    const Frame* caller;
    int state;  // State of the caller; -1 if there is none.
    int precedence;
  };
  // Recorded while recognizing a rule, reported when the rule is abandoned.
  struct Failure {
    std::string message;
    size_t offending;
  };

  // --- Tokens ---

  Token la(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)].token; }
  void consume() {
    if (la() != Token::Eof) ++at_;
  }
  void keep_token() {
    repaired_.push_back(tokens_[at_]);
    consume();
  }
  std::string quoted(std::string_view text) const {
    std::string out = "'";
    for (const char c : text) {
      if (c == '\n')
        out += "\\n";
      else if (c == '\t')
        out += "\\t";
      else if (c == '\r')
        out += "\\r";
      else
        out += c;
    }
    return out + "'";
  }
  std::string shown(size_t position) const {
    const Lexeme& lexeme = tokens_[position];
    return lexeme.token == Token::Eof ? "'<EOF>'" : quoted(text_.substr(lexeme.start, lexeme.end - lexeme.start));
  }
  static std::string listed(Tokens tokens) {
    tokens &= ~kRuleEnds;
    std::string out;
    const bool many = std::popcount(tokens) > 1;
    for (; tokens != 0; tokens &= tokens - 1) {
      if (!out.empty()) out += ", ";
      out += token_name(static_cast<Token>(std::countr_zero(tokens)));
    }
    return many ? "{" + out + "}" : out;
  }
  static bool has(Tokens tokens, Token t) { return (tokens & bit(t)) != 0; }

  // --- Expected tokens ---

  const State& state() const { return network().at(state_); }
  // Tokens that may come next in a state of the current rule, including those of its callers if the rule may end.
  Tokens in_context(int state) const {
    Tokens next = network().at(state).next, all = next & ~kRuleEnds;
    for (const Frame* frame = frame_; (next & kRuleEnds) != 0 && frame->caller != nullptr; frame = frame->caller) {
      next = network().at(network().follow(frame->state)).next;
      all |= next & ~kRuleEnds;
    }
    return (next & kRuleEnds) != 0 ? all | bit(Token::Eof) : all;
  }
  Tokens expected() const { return in_context(state_); }
  // Tokens that may follow any of the active rules.
  Tokens recovery_set() const {
    Tokens all = 0;
    for (const Frame* frame = frame_; frame->caller != nullptr; frame = frame->caller) {
      all |= network().at(network().follow(frame->state)).next;
    }
    return all & ~kRuleEnds;
  }

  // --- Reports ---

  void report(size_t offending, std::string message) {
    issues_.add(tokens_[offending].offset, "Syntax error: " + std::move(message));
  }
  void fail_mismatched() { failure_ = {"mismatched input " + shown(at_) + " expecting " + listed(expected()), at_}; }
  void fail_not_viable(size_t start, size_t offending) {
    std::string input = "<EOF>";
    if (tokens_[start].token != Token::Eof) {
      input = text_between(start, offending);
    }
    failure_ = {"no viable alternative at input " + quoted(input), offending};
    // Upstream uses an older message here.
    for (const std::string_view word : {"true", "false", "null"}) {
      if (input.size() == word.size() + 1 && input.ends_with(word)) {
        failure_->message = "mismatched input '" + std::string(word) + "' expecting IDENTIFIER";
      }
    }
  }
  // Excludes unrecognized characters, which the lexer has already reported.
  std::string text_between(size_t first, size_t last) const {
    std::string out;
    for (size_t i = first; i <= last; ++i) {
      for (size_t k = i == first ? tokens_[i].start : tokens_[i - 1].end; k < tokens_[i].start;) {
        const bool comment = text_.substr(k).starts_with("//");
        const size_t end = comment ? std::min<size_t>(text_.find('\n', k), tokens_[i].start) : k + 1;
        if (comment || std::string_view(" \t\r\n\f").find(text_[k]) != std::string_view::npos)
          out += text_.substr(k, end - k);
        k = end;
      }
      out += text_.substr(tokens_[i].start, tokens_[i].end - tokens_[i].start);
    }
    return out;
  }
  void begin_error() { recovering_ = true; }
  void end_error() {
    recovering_ = false;
    last_error_states_.clear();
    last_error_at_.reset();
  }
  void report_unwanted() {
    if (recovering_) return;
    begin_error();
    report(at_, "extraneous input " + shown(at_) + " expecting " + listed(expected()));
  }

  // --- Repairs ---

  void count_recovery() {
    if (recoveries_++ == kMaxRecoveries) {
      report(at_, "error recovery attempt limit exceeded: " + std::to_string(kMaxRecoveries));
      throw RecoveryAborted{};
    }
  }
  void pass_over(int& passed) {
    if (passed++ == kMaxPassedOver) {
      issues_.add_without_location("error recovery token lookahead limit exceeded: " + std::to_string(kMaxPassedOver));
      throw RecoveryAborted{};
    }
    consume();
  }
  void pass_over_until(Tokens tokens, int& passed) {
    while (la() != Token::Eof && !has(tokens, la())) pass_over(passed);
  }
  // If the next token is acceptable, the current one is extraneous.
  bool delete_token() {
    if (!has(expected(), la(1))) return false;
    report_unwanted();
    consume();
    end_error();
    return true;
  }
  // After abandoning a rule: skips to a token at which a caller can continue.
  void recover() {
    abandoned_ = true;
    count_recovery();
    int passed = 0;
    if (last_error_at_ == at_ && last_error_states_.contains(state_)) pass_over(passed);
    last_error_at_ = at_;
    last_error_states_.insert(state_);
    pass_over_until(recovery_set(), passed);
  }
  // Before a decision: the next token should be one of its candidates.
  bool sync() {
    if (recovering_) return true;
    if ((state().next & kRuleEnds) != 0 || has(state().next, la())) return true;
    if (state().kind == State::kDecision) {
      if (delete_token()) return true;
      fail_mismatched();
      return false;
    }
    if (state().kind == State::kLoopBack) {
      report_unwanted();
      int passed = 0;
      pass_over_until(expected() | recovery_set(), passed);
    }
    return true;
  }
  bool match(Tokens tokens) {
    if (has(tokens, la())) {
      end_error();
      keep_token();
      return true;
    }
    count_recovery();
    if (delete_token()) {
      keep_token();
      return true;
    }
    // Would the current token be acceptable if the expected one preceded it?
    if (has(in_context(state().steps[0].target), la())) {
      if (!recovering_) {
        begin_error();
        report(at_, "missing " + listed(expected()) + " at " + shown(at_));
      }
      const Lexeme& next = tokens_[at_];
      repaired_.push_back({static_cast<Token>(std::countr_zero(tokens)), next.offset, next.start, next.start});
      return true;
    }
    fail_mismatched();
    return false;
  }

  // --- Rules ---

  void deeper(Rule r) {
    if (++depths_[r] <= kMaxDepth) return;
    issues_.add_without_location("expression recursion limit exceeded: " + std::to_string(kMaxDepth));
    throw RecoveryAborted{};
  }
  void call(Rule r, int precedence) {
    const int depth = depths_[r];
    const size_t start = at_;
    const bool selects = r == kEscapeIdent && network().at(state_).rule == kMember;
    deeper(r);
    const Frame frame{frame_, state_, precedence};
    frame_ = &frame;
    if (!recognize(network().rule(r))) {
      if (!recovering_) {
        begin_error();
        report(failure_->offending, std::move(failure_->message));
      }
      // Upstream notices a selection without a name only when it visits the recognized tree.
      if (selects) issues_.add(tokens_[start].offset, "unsupported ident kind");
      recover();
      failure_.reset();
    }
    frame_ = frame.caller;
    state_ = frame.state;
    depths_[r] = depth;
  }

  // False if the rule is abandoned; failure_ is set.
  bool recognize(const Part& part) {
    if (part.kind != Part::kSequence) state_ = part.state;
    switch (part.kind) {
      case Part::kTokens:
        return match(part.tokens);
      case Part::kRule:
        call(part.rule, part.precedence);
        return true;
      case Part::kPrecedence:  // Already decided. The rule so far becomes the first operand of what follows.
        deeper(state().rule);
        return true;
      case Part::kSequence:
        for (const Part& inner : part.parts) {
          if (!recognize(inner)) return false;
        }
        return true;
      case Part::kChoice: {
        if (!sync()) return false;
        const size_t chosen = choose(part);
        return chosen < part.parts.size() && recognize(part.parts[chosen]);
      }
      case Part::kOptional:
        if (!sync()) return false;
        return !has(first_of(part.parts[0]), la()) || recognize(part.parts[0]);
      case Part::kStar:
        if (!sync()) return false;
        while (goes_on(part)) {
          if (!turn(part)) return false;
        }
        return !failure_;
      case Part::kPlus:
        if (!sync()) return false;
        do {
          if (!turn(part)) return false;
        } while (goes_on(part));
        return !failure_;
    }
    return true;
  }
  // One iteration of a loop.
  bool turn(const Part& loop) {
    if (!recognize(loop.parts[0])) return false;
    state_ = loop.back;
    return sync();
  }

  // --- Decisions ---

  // The index of the chosen alternative; past the end if none matches, with failure_ set.
  size_t choose(const Part& part) {
    std::vector<size_t> fitting;
    for (size_t i = 0; i < part.parts.size(); ++i) {
      if (has(first_of(part.parts[i]), la())) fitting.push_back(i);
    }
    if (fitting.size() == 1) return fitting[0];
    if (fitting.empty()) {
      fail_not_viable(at_, at_);
      return part.parts.size();
    }
    const std::optional<size_t> predicted = predict(part.state);
    return predicted ? *predicted : part.parts.size();
  }
  // The tokens with which a part may begin.
  static Tokens first_of(const Part& part) {
    if (part.kind == Part::kOptional) return first_of(part.parts[0]);
    if (part.kind != Part::kSequence) return network().at(part.state).next & ~kRuleEnds;
    Tokens first = 0;
    for (const Part& inner : part.parts) {
      if (inner.kind == Part::kPrecedence) continue;
      first |= first_of(inner);
      if (inner.kind != Part::kOptional) break;
    }
    return first;
  }
  bool goes_on(const Part& loop) {
    const Part& body = loop.parts[0];
    const auto fits = [&](const Part& turn) {
      const bool precedes = turn.kind == Part::kSequence && turn.parts[0].kind == Part::kPrecedence;
      return has(first_of(turn), la()) && (!precedes || turn.parts[0].precedence >= frame_->precedence);
    };
    if (body.kind == Part::kChoice) return std::any_of(body.parts.begin(), body.parts.end(), fits);
    if (!fits(body)) return false;
    // The comma may be a trailing one, and the minus may be the sign of a number.
    const bool ambiguous = la() == Token::Comma || la() == Token::Minus;
    if (!ambiguous || !may_leave_with(loop, la())) return true;
    const std::optional<size_t> predicted = predict(state_);
    return predicted == size_t{0};
  }
  bool may_leave_with(const Part& loop, Token t) const {
    if (loop.kind == Part::kPlus) return true;
    for (const int caller : network().callers(state().rule)) {
      if (has(network().at(network().follow(caller)).next, t)) return true;
    }
    return false;
  }

  // A path through the network. At the end of the decision's rule, all callers of that rule are followed, not only the
  // actual one: that is how ANTLR looks ahead.
  struct Path {
    int state;
    size_t alternative;
    int stack;  // Return states of called rules; 0 is the decision's rule.
    bool left;  // Has left the decision's rule.
    auto operator<=>(const Path&) const = default;
  };
  using Paths = std::set<Path>;

  int push(int follow, int below) {
    for (size_t i = 0; i < stacks_.size(); ++i) {
      if (stacks_[i] == std::pair(follow, below)) return static_cast<int>(i) + 1;
    }
    stacks_.emplace_back(follow, below);
    return static_cast<int>(stacks_.size());
  }
  void spread(const Path& from, Paths& into) {
    Paths seen;
    std::vector<Path> open{from};
    while (!open.empty()) {
      const Path path = open.back();
      open.pop_back();
      if (!seen.insert(path).second) continue;
      if (++look_steps_ > kMaxLookSteps) {
        issues_.add_without_location("expression has syntax errors, and is too large to list them");
        throw RecoveryAborted{};
      }
      const State& at = network().at(path.state);
      if (at.kind == State::kRuleEnd) {
        if (path.stack != 0) {
          const auto [follow, below] = stacks_[static_cast<size_t>(path.stack) - 1];
          open.push_back({follow, path.alternative, below, path.left});
        } else {
          for (const int caller : network().callers(at.rule)) {
            open.push_back({network().follow(caller), path.alternative, 0, true});
          }
          if (at.rule == kStart) into.insert(path);
        }
        continue;
      }
      for (const Step& step : at.steps) {
        if (step.kind == Step::kTokens) {
          into.insert(path);
        } else if (step.kind == Step::kRule) {
          open.push_back({network().start(step.rule), path.alternative, push(step.target, path.stack), path.left});
        } else {
          open.push_back({step.target, path.alternative, path.stack, path.left});
        }
      }
    }
  }
  static std::optional<size_t> only_alternative(const Paths& paths) {
    std::optional<size_t> only;
    for (const Path& path : paths) {
      if (only && *only != path.alternative) return std::nullopt;
      only = path.alternative;
    }
    return only;
  }
  static size_t first_alternative(const Paths& paths) {
    size_t first = paths.begin()->alternative;
    for (const Path& path : paths) first = std::min(first, path.alternative);
    return first;
  }
  // Whether the rest is the same for several alternatives.
  static bool conflict(const Paths& paths) {
    std::set<std::pair<int, size_t>> states;
    std::set<std::tuple<int, int, size_t>> places;
    for (const Path& path : paths) {
      states.insert({path.state, path.alternative});
      places.insert({path.state, path.stack, path.alternative});
    }
    bool shared_place = false;
    for (auto place = places.begin(); place != places.end() && std::next(place) != places.end(); ++place) {
      const auto next = std::next(place);
      shared_place =
          shared_place || (std::get<0>(*place) == std::get<0>(*next) && std::get<1>(*place) == std::get<1>(*next));
    }
    if (!shared_place) return false;
    for (auto one = states.begin(); one != states.end();) {
      auto end = one;
      while (end != states.end() && end->first == one->first) ++end;
      if (std::distance(one, end) == 1) return false;
      one = end;
    }
    return true;
  }
  // The result of a prediction, and how many tokens it examined.
  struct Prediction {
    std::optional<size_t> alternative;
    size_t looked_at;
  };
  // The same tokens give the same prediction; those that examined more are not cached.
  static constexpr size_t kKeptTokens = 4;
  uint64_t prediction_key(int decision, size_t looked_at) const {
    auto key = static_cast<uint64_t>(decision);
    for (size_t i = 0; i < looked_at; ++i) key = key << 8 | (static_cast<uint64_t>(la(i)) + 1);
    return key;
  }

  // The alternative that matches the next tokens; nullopt if there is none, with failure_ set.
  std::optional<size_t> predict(int decision) {
    std::optional<Prediction> prediction;
    for (size_t count = 1; count <= kKeptTokens && !prediction; ++count) {
      const auto kept = predictions_.find(prediction_key(decision, count));
      if (kept != predictions_.end()) prediction = kept->second;
    }
    if (!prediction) {
      prediction = look_ahead(decision);
      if (prediction->looked_at <= kKeptTokens) {
        predictions_.emplace(prediction_key(decision, prediction->looked_at), *prediction);
      }
    }
    if (!prediction->alternative) fail_not_viable(at_, std::min(at_ + prediction->looked_at, tokens_.size()) - 1);
    return prediction->alternative;
  }
  Prediction look_ahead(int decision) {
    stacks_.clear();
    Paths paths;
    const std::vector<Step>& alternatives = network().at(decision).steps;
    for (size_t i = 0; i < alternatives.size(); ++i) spread({alternatives[i].target, i, 0, false}, paths);
    for (size_t ahead = 0;; ++ahead) {
      Paths moved;
      for (const Path& path : paths) {
        for (const Step& step : network().at(path.state).steps) {
          if (step.kind == Step::kTokens && has(step.tokens, la(ahead))) {
            moved.insert({step.target, path.alternative, path.stack, path.left});
          }
        }
      }
      if (moved.empty()) {
        // An alternative that reached the end of the rule is accepted: the error is in what follows.
        std::optional<size_t> ended;
        for (const Path& path : paths) {
          if (path.left) ended = std::min(ended.value_or(path.alternative), path.alternative);
        }
        return {ended, ahead + 1};
      }
      if (const auto only = only_alternative(moved)) return {only, ahead + 1};
      Paths next;
      for (const Path& path : moved) spread(path, next);
      if (la(ahead) == Token::Eof || conflict(next)) return {first_alternative(next), ahead + 1};
      paths = std::move(next);
    }
  }

  const std::string_view text_;
  const std::span<const Lexeme> tokens_;
  Issues& issues_;
  size_t at_ = 0;
  int state_ = -1;
  const Frame* frame_ = nullptr;
  std::array<int, kRules> depths_{};
  std::optional<Failure> failure_;
  bool recovering_ = false;
  std::optional<size_t> last_error_at_;
  std::set<int> last_error_states_;
  int recoveries_ = 0;
  bool abandoned_ = false;
  std::vector<Lexeme> repaired_;
  std::vector<std::pair<int, int>> stacks_;  // Return state and index of the stack below.
  size_t look_steps_ = 0;
  std::unordered_map<uint64_t, Prediction> predictions_;
};

}  // namespace

std::optional<std::vector<Lexeme>> report_syntax_errors(std::string_view text, std::span<const Lexeme> tokens,
                                                        Issues& issues) {
  return Recognizer(text, tokens, issues).run();
}

}  // namespace holdfast::cel
