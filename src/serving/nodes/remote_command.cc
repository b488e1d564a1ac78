#include "nodes/remote_command.h"

#include "base/api_error.h"
#include "base/go_numbers.h"
#include "base/strings.h"
#include "base/text.h"
#include "base/url.h"
#include "codec/codec.h"
#include "nodes/opening.h"
#include "nodes/spdy.h"
#include "nodes/web_socket_client.h"
#include "render/status.h"

namespace holdfast::nodes {
namespace {

constexpr std::string_view kProtocol = "v5.channel.k8s.io";
// What kubelets know; the fifth version only adds the closing of single streams, which SPDY has by itself.
constexpr std::string_view kKubeletProtocols[] = {"v5.channel.k8s.io", "v4.channel.k8s.io"};

enum Channel : uint8_t { kStdin = 0, kStdout = 1, kStderr = 2, kError = 3, kResize = 4, kCloseChannel = 255 };

// The status of a command, or a refusal.
constexpr size_t kMaxStatusBytes = 1 << 20;

// As Go marshals a metav1.Status that was made by hand: without kind and apiVersion.
std::string bare_status(const Value& status) {
  Arena arena;
  MapBuilder bare(arena);
  for (const Member& member : status.members()) {
    if (member.key != "kind" && member.key != "apiVersion") bare.add(member.key, member.value);
  }
  return codec::encode_json(bare.build());
}

std::string failure(const std::string& why) {
  Arena arena;
  return bare_status(render::status_of(arena, internal(why)));
}

std::string exit_status(uint64_t code) {
  Arena arena;
  MapBuilder cause(arena), details(arena), status(arena);
  const std::string number = std::to_string(code);
  cause.add("reason", Value::string("ExitCode"));
  cause.add("message", Value::string(number));
  ListBuilder causes(arena);
  causes.add(cause.build());
  details.add("causes", causes.build());
  const std::string message = "command terminated with non-zero exit code: command terminated with exit code " + number;
  status.add("metadata", Value::empty_map());
  status.add("status", Value::string("Failure"));
  status.add("message", Value::string(message));
  status.add("reason", Value::string("NonZeroExitCode"));
  status.add("details", details.build());
  return codec::encode_json(status.build());
}

// What the client is told when the kubelet has sent this on the error stream (errorDecoderV4 of
// client-go/tools/remotecommand/v4.go, and the handler's translation of its result).
std::string client_status(const std::string& sent) {
  if (sent.empty()) return R"({"metadata":{},"status":"Success"})";
  Arena arena;
  const Result<Value> status = codec::decode_json(arena, sent);
  if (!status) {
    return failure("error stream protocol error: " + status.error().message + " in " + go_quote(sent));
  }
  const std::string_view outcome = status->text_at("status");
  if (outcome == "Success") return R"({"metadata":{},"status":"Success"})";
  if (outcome != "Failure") return failure("error stream protocol error: unknown error");
  if (status->text_at("reason") != "NonZeroExitCode") return failure(std::string(status->text_at("message")));
  if (!status->has("details")) return failure("error stream protocol error: details must be set");
  for (const Value& cause : status->items_at("details", "causes")) {
    if (cause.text_at("reason") != "ExitCode") continue;
    const std::string_view number = cause.text_at("message");
    const std::optional<uint64_t> code = parse_number<uint64_t>(number);
    if (!code || *code > UINT8_MAX) {
      return failure("error stream protocol error: invalid exit code value " + go_quote(number));
    }
    return exit_status(*code);
  }
  return failure("error stream protocol error: no ExitCode cause given");
}

// Both directions of one command. Frames may be sent to the kubelet by either coroutine, one at a time.
class Command {
 public:
  Command(WebSocketClient& client, net::ClientStream& kubelet, const Streams& wanted)
      : client_(client), kubelet_(kubelet), wanted_(wanted) {}

  Task<void> run(net::EventLoop& loop) {
    std::string frames;
    error_ = spdy_.open("streamtype", "error", frames);
    if (wanted_.in) stdin_ = spdy_.open("streamtype", "stdin", frames);
    if (wanted_.out) stdout_ = spdy_.open("streamtype", "stdout", frames);
    if (wanted_.error && !wanted_.tty) stderr_ = spdy_.open("streamtype", "stderr", frames);
    if (wanted_.tty) resize_ = spdy_.open("streamtype", "resize", frames);
    open_outputs_ = (stdout_ ? 1 : 0) + (stderr_ ? 1 : 0);
    unanswered_ = 1 + open_outputs_ + (stdin_ ? 1 : 0) + (resize_ ? 1 : 0);
    net::CallResult<Unit> sent = co_await kubelet_.write(frames);
    if (!sent) {
      (void)co_await client_.send(channel_message(kError, failure(sent.error().message)));
      co_return client_.finish();
    }
    while (!over_ && unanswered_ > 0) co_await receive();
    std::vector<Task<void>> both;
    both.push_back(client_to_kubelet());
    both.push_back(kubelet_to_client());
    co_await when_all(loop, std::move(both));
  }

 private:
  static std::string channel_message(Channel channel, std::string_view bytes) {
    return std::string(1, static_cast<char>(channel)).append(bytes);
  }

  std::optional<SpdyClient::Stream>* input(uint8_t channel) {
    if (channel == kStdin) return &stdin_;
    return channel == kResize ? &resize_ : nullptr;
  }

  Task<void> client_to_kubelet() {
    while (std::optional<net::WebSocketMessages::Message> message = co_await client_.next()) {
      const std::string_view payload = message->payload;
      if (payload.empty()) continue;
      const auto channel = static_cast<uint8_t>(payload[0]);
      const bool closes = channel == kCloseChannel;
      if (closes && (payload.size() != 2 || static_cast<uint8_t>(payload[1]) > kResize)) break;
      std::optional<SpdyClient::Stream>* to = input(closes ? static_cast<uint8_t>(payload[1]) : channel);
      if (to == nullptr || !*to) continue;
      std::string frame;
      SpdyClient::write(**to, closes ? std::string_view() : payload.substr(1), closes, frame);
      if (closes) to->reset();
      net::CallResult<Unit> sent = co_await send(frame);
      if (!sent) break;
    }
    kubelet_.cancel();
  }

  Task<void> kubelet_to_client() {
    while (!over_) co_await receive();
    client_.finish();
    kubelet_.cancel();
  }

  // Passes on what the kubelet has sent. Sets over_ when the command has ended.
  Task<void> receive() {
    net::CallResult<std::string> piece = co_await kubelet_.read_some();
    if (!piece || piece->empty()) {
      const std::string why = piece ? "EOF" : piece.error().message;
      co_return co_await end_with(failure("error reading from error stream: " + why));
    }
    spdy_.receive(*piece);
    while (!over_) {
      std::string replies;
      Result<std::optional<SpdyClient::Event>> event = spdy_.next(replies);
      if (!replies.empty()) queue(replies);
      if (!event) co_return co_await end_with(failure(event.error().message));
      if (!*event) co_return;
      const std::optional<std::string> message = see(**event);
      if (message && !co_await client_.send(*message)) over_ = true;
      if (open_outputs_ == 0 && error_ended_) co_await end_with(client_status(sent_status_));
    }
  }

  Task<void> end_with(std::string status) {
    over_ = true;
    (void)co_await client_.send(channel_message(kError, status));
  }

  // What the client is to receive for an event.
  std::optional<std::string> see(const SpdyClient::Event& event) {
    using Kind = SpdyClient::Event::Kind;
    if (event.kind == Kind::Data) {
      if (event.stream == stdout_) return channel_message(kStdout, event.bytes);
      if (event.stream == stderr_) return channel_message(kStderr, event.bytes);
      if (event.stream == error_ && sent_status_.size() < kMaxStatusBytes) sent_status_ += event.bytes;
      return std::nullopt;
    }
    if (event.kind == Kind::Close) return std::nullopt;
    if (event.kind == Kind::Reply) {
      --unanswered_;
      return std::nullopt;
    }
    if (event.kind == Kind::Reset) {
      --unanswered_;
      if (event.stream == error_) sent_status_ = R"({"status":"Failure","message":"stream reset"})";
    }
    if (event.stream == error_) error_ended_ = true;
    for (std::optional<SpdyClient::Stream>* output : {&stdout_, &stderr_}) {
      if (!*output || event.stream != **output) continue;
      output->reset();
      --open_outputs_;
    }
    return std::nullopt;
  }

  // Replies wait for the next frame of the client, because the other coroutine may be sending now; then they are lost
  // if there is none, which kubelets tolerate.
  void queue(std::string_view frames) {
    if (queued_.size() < kMaxQueuedBytes) queued_ += frames;
  }
  Task<net::CallResult<Unit>> send(std::string frame) {
    const std::string frames = std::exchange(queued_, {}) + frame;
    co_return co_await kubelet_.write(frames);
  }

  static constexpr size_t kMaxQueuedBytes = 4096;

  WebSocketClient& client_;
  net::ClientStream& kubelet_;
  const Streams wanted_;
  SpdyClient spdy_;
  SpdyClient::Stream error_;
  std::optional<SpdyClient::Stream> stdin_, stdout_, stderr_, resize_;
  int open_outputs_ = 0;
  int unanswered_ = 0;  // Streams that the kubelet has not accepted yet.
  bool over_ = false;
  bool error_ended_ = false;
  std::string sent_status_;
  std::string queued_;
};

Task<std::string> read_refusal(net::ClientStream& stream) {
  std::string text;
  while (text.size() < kMaxStatusBytes) {
    net::CallResult<std::string> piece = co_await stream.read_some();
    if (!piece) co_return failure("unable to upgrade connection: unable to read error from server response");
    if (piece->empty()) break;
    text += *piece;
  }
  Arena arena;
  const Result<Value> status = codec::decode_json(arena, text);
  if (status && status->is_map() && status->text_at("kind") == "Status") co_return bare_status(*status);
  co_return failure("unable to upgrade connection: " + std::string(trim(text)));
}

// As much as is wrong with the response to the upgrade; empty if nothing is.
Task<std::string> refusal_of(net::ClientStream& stream) {
  const net::ClientResponse& head = stream.head();
  if (head.status == 101 && to_lower(head.header("upgrade")).find("spdy/3.1") != std::string::npos) {
    const std::string_view chosen = head.header("x-stream-protocol-version");
    const auto* known = std::find(std::begin(kKubeletProtocols), std::end(kKubeletProtocols), chosen);
    if (known != std::end(kKubeletProtocols)) co_return std::string();
    co_return failure("the kubelet knows none of the protocols v5.channel.k8s.io and v4.channel.k8s.io");
  }
  if (head.status == 101) co_return failure("unable to upgrade connection: ");
  const bool redirects = head.status >= 300 && head.status < 400 && !head.header("location").empty();
  if (redirects) {
    co_return failure("error sending request: Post " + go_quote(head.header("location")) + ": redirect not allowed");
  }
  co_return co_await read_refusal(stream);
}

}  // namespace

Task<void> translate_remote_command(call::Call& call, const Nodes& nodes, Destination to, std::string path,
                                    Streams streams) {
  WebSocketClient client(call);
  if (!client.accept(kProtocol)) co_return;
  // Tells the client that the connection is established.
  const uint8_t first = streams.out ? kStdout : streams.error ? kStderr : kError;
  if (!co_await client.send(std::string(1, static_cast<char>(first)))) co_return;

  net::ClientRequest request;
  request.method = "POST";
  request.target = path;
  request.upgrade = "SPDY/3.1";
  for (const std::string_view protocol : kKubeletProtocols) {
    request.headers.emplace_back("X-Stream-Protocol-Version", protocol);
  }
  request.cancellation = cancelled_with(call);
  const std::string url = "https://" + host_port(to.host, to.port) + path;
  net::CallResult<net::ClientStream> opened = co_await nodes.open(call.request.loop(), to, std::move(request));
  if (!opened) {
    const std::string why = "error sending request: Post " + go_quote(url) + ": " + opened.error().message;
    (void)co_await client.send(std::string(1, static_cast<char>(kError)) + failure(why));
    co_return client.finish();
  }
  net::ClientStream stream = std::move(*opened);
  end_together(call, stream);
  if (const std::string refusal = co_await refusal_of(stream); !refusal.empty()) {
    (void)co_await client.send(std::string(1, static_cast<char>(kError)) + refusal);
    co_return client.finish();
  }
  Command command(client, stream, streams);
  co_await command.run(call.request.loop());
}

}  // namespace holdfast::nodes
