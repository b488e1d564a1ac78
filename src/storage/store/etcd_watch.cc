#include "store/etcd_watch.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "store/calls.h"
#include "store/rules.h"

namespace holdfast::store::etcd {
namespace {

// What may be queued for a slow reader before we stop reading from the stream; flow control then stops etcd.
constexpr uint64_t kQueueBytes = 16 << 20;
constexpr size_t kQueueBatches = 256;
constexpr auto kLongestPause = std::chrono::milliseconds(1000);

class Stream;

// The state that outlives individual streams: the position, the received events, the waiting callback.
class EtcdWatchState final : public Client::Operation, public std::enable_shared_from_this<EtcdWatchState> {
 public:
  EtcdWatchState(std::shared_ptr<Client> client, WatchRequest request)
      : client_(std::move(client)), request_(std::move(request)), position_(request_.after) {}

  void start();
  void next(Callback<WatchBatch> done);
  void request_progress();
  void cancel() override { end(closed_error()); }
  // The watcher is being destroyed.
  void close() {
    end(closed_error());
    calls_.wait_for_others();
  }

  // ---- Called by the stream ----
  void created(Stream* stream);
  bool has_room();
  // Whether to continue reading immediately.
  bool received(Stream* stream, pb::WatchResponse& response);
  void done(Stream* stream, const grpc::Status& status);
  pb::WatchRequest create_request();

 private:
  void open_stream();
  void open_stream_later();
  void previous_is_missing(Stream* stream, const pb::KeyValue& now);
  // Queues a batch; the lock is held on entry and released. The position that it reports must have been read or set
  // under the same lock, so that batches are in order whichever threads they come from.
  void push(std::unique_lock<std::mutex> lock, WatchBatch batch, uint64_t bytes);
  void end(StoreError error);
  // Completes the pending next() if there is something to deliver; the lock is held on entry and released.
  void answer(std::unique_lock<std::mutex> lock);

  const std::shared_ptr<Client> client_;
  const WatchRequest request_;
  CallbackCounter calls_;

  std::mutex mutex_;               // Guards the members below.
  Revision position_;              // Everything up to here has been received.
  bool stream_abandoned_ = false;  // Whatever else it brings comes again on the next one.
  bool asking_ = false;            // Whether a missing previous value has been compacted.
  std::shared_ptr<Stream> stream_;
  std::chrono::milliseconds pause_{25};
  bool progress_wanted_ = false;
  std::deque<std::pair<WatchBatch, uint64_t>> queue_;
  uint64_t queue_bytes_ = 0;
  std::optional<StoreError> ended_;
  bool entered_ = false;
  Callback<WatchBatch> waiting_;
};

class Stream final : public grpc::ClientBidiReactor<pb::WatchRequest, pb::WatchResponse>,
                     public std::enable_shared_from_this<Stream> {
 public:
  Stream(std::shared_ptr<EtcdWatchState> following, size_t endpoint)
      : following_(std::move(following)), endpoint_(endpoint) {}

  size_t endpoint() const { return endpoint_; }

  void begin(pb::Watch::Stub& stub, pb::WatchRequest create) {
    std::lock_guard lock(mutex_);
    self_ = shared_from_this();
    begun_ = true;
    context_.AddMetadata("hasleader", "true");
    message_ = std::move(create);
    stub.async()->Watch(&context_, this);
    AddHold();  // Reads and writes are also started outside of reactions; the stream stays alive until release_hold().
    writing_ = true;
    StartWrite(&message_);
    reading_ = true;
    StartRead(&response_);
    StartCall();
  }

  void read_on() {
    std::lock_guard lock(mutex_);
    if (!begun_ || reading_ || broken_) return;
    reading_ = true;
    StartRead(&response_);
  }

  void ask_progress() {
    std::lock_guard lock(mutex_);
    progress_wanted_ = true;
    write_progress();
  }

  // May be called before begin(): gRPC then ends the stream as soon as it begins.
  void cancel() {
    context_.TryCancel();
    std::lock_guard lock(mutex_);
    if (begun_ && !reading_ && !broken_) release_hold();
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      std::lock_guard lock(mutex_);
      reading_ = false;
      return release_hold();
    }
    bool on = following_->received(this, response_);
    {
      std::lock_guard lock(mutex_);
      response_.Clear();
      if (on) return StartRead(&response_);
      reading_ = false;
    }
    // The reader may have emptied the queue before we recorded that we stopped.
    if (following_->has_room()) read_on();
  }

  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    writing_ = false;
    if (ok) write_progress();
  }

  void OnDone(const grpc::Status& status) override {
    std::shared_ptr<Stream> self = std::move(self_);
    following_->done(this, status);
  }

 private:
  void release_hold() {
    broken_ = true;
    RemoveHold();
  }
  void write_progress() {
    if (!progress_wanted_ || !begun_ || writing_ || broken_) return;
    progress_wanted_ = false;
    writing_ = true;
    message_.Clear();
    message_.mutable_progress_request();
    StartWrite(&message_);
  }

  const std::shared_ptr<EtcdWatchState> following_;
  const size_t endpoint_;
  std::shared_ptr<Stream> self_;  // Until OnDone.
  grpc::ClientContext context_;
  pb::WatchRequest message_;
  pb::WatchResponse response_;

  std::mutex mutex_;  // Guards the members below.
  bool begun_ = false;
  bool reading_ = false;
  bool writing_ = false;
  bool broken_ = false;
  bool progress_wanted_ = false;
};

void EtcdWatchState::start() {
  entered_ = client_->enter(shared_from_this());
  if (!entered_) return end(closed_error());
  if (request_.after != Revision{}) return open_stream();
  // "From now on" must be resolved to a revision, or changes made while the stream reconnects would be missed.
  pb::RangeRequest now;
  now.set_key(range_key(request_.prefix));
  now.set_range_end(range_end(request_.prefix));
  now.set_limit(1);
  now.set_keys_only(true);
  client_->call<pb::RangeRequest, pb::RangeResponse>(
      std::move(now), Repeat::Freely, [](Stubs& stubs, auto... rest) { stubs.kv->async()->Range(rest...); },
      [self = shared_from_this()](StoreResult<pb::RangeResponse*> response) {
        if (!response) return self->end(response.take_error());
        Revision revision{static_cast<uint64_t>((*response)->header().revision())};
        std::unique_lock lock(self->mutex_);
        self->position_ = revision;
        self->push(std::move(lock), {{}, revision}, 0);
        self->open_stream();
      });
}

pb::WatchRequest EtcdWatchState::create_request() {
  std::lock_guard lock(mutex_);
  pb::WatchRequest request;
  pb::WatchCreateRequest& create = *request.mutable_create_request();
  create.set_key(range_key(request_.prefix));
  create.set_range_end(range_end(request_.prefix));
  create.set_start_revision(static_cast<int64_t>(position_.value + 1));
  create.set_progress_notify(true);
  create.set_prev_kv(true);
  return request;
}

void EtcdWatchState::open_stream() {
  std::shared_ptr<Stream> stream;
  {
    std::lock_guard lock(mutex_);
    if (ended_) return;
    stream_abandoned_ = false;
    stream = stream_ = std::make_shared<Stream>(shared_from_this(), client_->endpoint());
  }
  stream->begin(*client_->stubs(stream->endpoint()).watch, create_request());
}

void EtcdWatchState::open_stream_later() {
  std::chrono::milliseconds pause;
  {
    std::lock_guard lock(mutex_);
    pause = pause_;
    pause_ = std::min<std::chrono::milliseconds>(pause_ * 2, kLongestPause);
  }
  client_->after(pause, [self = shared_from_this()](bool fired) {
    if (fired) self->open_stream();
  });
}

void EtcdWatchState::next(Callback<WatchBatch> done) {
  std::shared_ptr<Stream> stream;
  {
    std::unique_lock lock(mutex_);
    assert(!waiting_ && "one next() at a time");
    waiting_ = std::move(done);
    stream = stream_;
    answer(std::move(lock));
  }
  if (stream) stream->read_on();
}

void EtcdWatchState::request_progress() {
  std::unique_lock lock(mutex_);
  if (!client_->progress_exact()) {
    // Progress of this etcd could overtake events in flight. Only what we have received is certain.
    const Revision position = position_;
    if (position != Revision{}) push(std::move(lock), {{}, position}, 0);
    return;
  }
  if (!stream_) {
    progress_wanted_ = true;
    return;
  }
  std::shared_ptr<Stream> stream = stream_;
  lock.unlock();
  stream->ask_progress();
}

void EtcdWatchState::created(Stream* stream) {
  bool ask = false;
  {
    std::lock_guard lock(mutex_);
    pause_ = std::chrono::milliseconds(25);
    ask = std::exchange(progress_wanted_, false);
  }
  if (ask) stream->ask_progress();
}

bool EtcdWatchState::received(Stream* stream, pb::WatchResponse& response) {
  {
    std::lock_guard lock(mutex_);
    if (stream_abandoned_) return true;
  }
  if (response.canceled()) {
    if (response.compact_revision() > 0) {
      std::unique_lock lock(mutex_);
      Revision position = position_;
      lock.unlock();
      end(compacted_error(position, {static_cast<uint64_t>(response.compact_revision())}));
    } else if (response.cancel_reason().find("permission denied") != std::string::npos) {
      end({ErrorKind::Internal, "etcd at " + client_->stubs(stream->endpoint()).url + ": " + response.cancel_reason()});
    } else {
      stream->cancel();  // Another stream is opened then.
    }
    return true;  // The next read reports the end of the stream.
  }
  if (response.created()) {
    created(stream);
    return true;
  }
  if (response.events().empty()) {
    // The response of an old etcd to a progress request, which is not tied to one watch, may be ahead of events not yet
    // sent: relying on it would lose them. Its unsolicited notifications are ordered with the events
    // (watchableStore.progress()).
    const bool on_request = response.watch_id() < 0;
    if (on_request && !client_->progress_exact()) return true;
    Revision revision{static_cast<uint64_t>(response.header().revision())};
    std::unique_lock lock(mutex_);
    if (revision < position_) return true;  // From a member that is behind.
    position_ = revision;
    push(std::move(lock), {{}, revision}, 0);
    return true;
  }
  WatchBatch batch;
  uint64_t bytes = 0;
  for (pb::Event& received : *response.mutable_events()) {
    auto event = std::make_shared<Event>();
    pb::KeyValue& now = *received.mutable_kv();
    event->revision = {static_cast<uint64_t>(now.mod_revision())};
    event->created = {static_cast<uint64_t>(now.create_revision())};
    bool deleted = received.type() == pb::Event::DELETE;
    event->type = deleted                                       ? Event::Type::Deleted
                  : now.create_revision() == now.mod_revision() ? Event::Type::Created
                                                                : Event::Type::Updated;
    if (!deleted) event->value = make_blob(std::move(*now.mutable_value()));
    if (event->type != Event::Type::Created) {
      if (!received.has_prev_kv()) {
        previous_is_missing(stream, now);
        return true;
      }
      pb::KeyValue& before = *received.mutable_prev_kv();
      event->previous = make_blob(std::move(*before.mutable_value()));
      event->previous_revision = {static_cast<uint64_t>(before.mod_revision())};
      event->created = {static_cast<uint64_t>(before.create_revision())};
    }
    event->key = std::move(*now.mutable_key());
    bytes +=
        event->key.size() + (event->value ? event->value->size() : 0) + (event->previous ? event->previous->size() : 0);
    batch.revision = event->revision;
    batch.events.push_back(std::move(event));
  }
  {
    std::unique_lock lock(mutex_);
    position_ = batch.revision;
    push(std::move(lock), std::move(batch), bytes);
  }
  return has_room();
}

// etcd reads the previous value when it sends the event, and leaves it out where that read fails: for good if it was
// compacted, or a few times if etcd is starting or stopping. Reading it tells which; meanwhile a stream is opened again
// at the same position.
void EtcdWatchState::previous_is_missing(Stream* stream, const pb::KeyValue& now) {
  bool asking = false;
  {
    std::lock_guard lock(mutex_);
    stream_abandoned_ = true;
    asking = std::exchange(asking_, true);
  }
  stream->cancel();
  if (asking) return;
  const uint64_t revision = static_cast<uint64_t>(now.mod_revision());
  pb::RangeRequest before;
  before.set_key(now.key());
  before.set_revision(now.mod_revision() - 1);
  before.set_keys_only(true);
  client_->call<pb::RangeRequest, pb::RangeResponse>(
      std::move(before), Repeat::Freely, [](Stubs& stubs, auto... rest) { stubs.kv->async()->Range(rest...); },
      [self = shared_from_this(), revision](StoreResult<pb::RangeResponse*> response) {
        if (!response && response.error().kind == ErrorKind::Compacted) {
          return self->end(compacted_error({revision - 1}, {revision}));
        }
        std::lock_guard lock(self->mutex_);
        self->asking_ = false;
      });
}

bool EtcdWatchState::has_room() {
  std::lock_guard lock(mutex_);
  return queue_bytes_ < kQueueBytes && queue_.size() < kQueueBatches;
}

void EtcdWatchState::done(Stream* stream, const grpc::Status& status) {
  {
    std::unique_lock lock(mutex_);
    if (stream_.get() == stream) stream_.reset();
    if (ended_) {
      bool leaving = std::exchange(entered_, false);
      lock.unlock();
      if (leaving) client_->leave(shared_from_this());
      return;
    }
  }
  // A stream that was cancelled here, to open another one, is no failure to report.
  client_->failed(stream->endpoint(),
                  status.error_code() == grpc::StatusCode::CANCELLED ? std::string() : status.error_message());
  if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
      status.error_code() == grpc::StatusCode::PERMISSION_DENIED) {
    end(from_grpc(status, Repeat::Freely, client_->stubs(stream->endpoint()).url));
    return;
  }
  open_stream_later();
}

void EtcdWatchState::push(std::unique_lock<std::mutex> lock, WatchBatch batch, uint64_t bytes) {
  // Only the newest progress notification matters.
  if (batch.events.empty() && !queue_.empty() && queue_.back().first.events.empty()) {
    queue_.back().first.revision = std::max(queue_.back().first.revision, batch.revision);
  } else {
    queue_.emplace_back(std::move(batch), bytes);
    queue_bytes_ += bytes;
  }
  answer(std::move(lock));
}

void EtcdWatchState::end(StoreError error) {
  std::shared_ptr<Stream> stream;
  std::unique_lock lock(mutex_);
  if (!ended_) ended_ = std::move(error);
  stream = stream_;
  bool leaving = !stream && std::exchange(entered_, false);
  answer(std::move(lock));
  if (stream) stream->cancel();
  if (leaving) client_->leave(shared_from_this());
}

void EtcdWatchState::answer(std::unique_lock<std::mutex> lock) {
  if (!waiting_ || (queue_.empty() && !ended_)) return;
  Callback<WatchBatch> waiting = std::exchange(waiting_, nullptr);
  // Events received before the end are still delivered, unless the watcher itself is being destroyed.
  bool closing = ended_ && ended_->kind == ErrorKind::Closed;
  StoreResult<WatchBatch> result = WatchBatch{};
  if (!queue_.empty() && !closing) {
    result = std::move(queue_.front().first);
    queue_bytes_ -= queue_.front().second;
    queue_.pop_front();
  } else {
    result = *ended_;
  }
  calls_.begin();
  lock.unlock();
  calls_.run([&] {
    waiting(std::move(result));
    waiting = nullptr;
  });
}

class EtcdWatcher final : public Watcher {
 public:
  explicit EtcdWatcher(std::shared_ptr<EtcdWatchState> following) : following_(std::move(following)) {}
  ~EtcdWatcher() override { following_->close(); }
  void next(Callback<WatchBatch> done) override { following_->next(std::move(done)); }
  void request_progress() override { following_->request_progress(); }

 private:
  std::shared_ptr<EtcdWatchState> following_;
};

}  // namespace

std::string range_key(std::string_view prefix, std::string_view from) {
  std::string key(std::max(prefix, from));
  return key.empty() ? std::string(1, '\0') : key;
}

std::string range_end(std::string_view prefix) {
  std::string end = prefix_end(prefix);
  return end.empty() ? std::string(1, '\0') : end;
}

std::unique_ptr<Watcher> watch(std::shared_ptr<Client> client, WatchRequest request) {
  auto following = std::make_shared<EtcdWatchState>(std::move(client), std::move(request));
  following->start();
  return std::make_unique<EtcdWatcher>(std::move(following));
}

}  // namespace holdfast::store::etcd
