// How a watch takes answers that a healthy etcd rarely gives, from a server that gives them on request.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <vector>

#include "etcd.grpc.pb.h"
#include "store/test_etcd.h"
#include "store/test_support.h"

namespace holdfast::store::testing {
namespace {

namespace pb = ::etcdserverpb;

// The first stream gets the first list of responses, the second one the second, and so on; further ones get the last
// one again. Reads of revisions up to `compacted` fail.
class ScriptedEtcd final : public pb::Watch::Service, public pb::Maintenance::Service, public pb::KV::Service {
 public:
  using Script = std::vector<pb::WatchResponse>;

  ScriptedEtcd(std::vector<Script> scripts, int64_t compacted) : scripts_(std::move(scripts)), compacted_(compacted) {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(static_cast<pb::Watch::Service*>(this));
    builder.RegisterService(static_cast<pb::Maintenance::Service*>(this));
    builder.RegisterService(static_cast<pb::KV::Service*>(this));
    server_ = builder.BuildAndStart();
    url_ = "http://127.0.0.1:" + std::to_string(port);
  }
  ~ScriptedEtcd() override { server_->Shutdown(std::chrono::system_clock::now()); }
  ScriptedEtcd(const ScriptedEtcd&) = delete;
  ScriptedEtcd& operator=(const ScriptedEtcd&) = delete;

  const std::string& url() const { return url_; }
  std::vector<int64_t> starts() {
    std::lock_guard lock(mutex_);
    return starts_;
  }

 private:
  grpc::Status Status(grpc::ServerContext*, const pb::StatusRequest*, pb::StatusResponse* response) override {
    response->set_version("3.5.13");
    return grpc::Status::OK;
  }

  grpc::Status Range(grpc::ServerContext*, const pb::RangeRequest* request, pb::RangeResponse*) override {
    if (request->revision() > compacted_) return grpc::Status::OK;
    return {grpc::StatusCode::OUT_OF_RANGE, "etcdserver: mvcc: required revision has been compacted"};
  }

  grpc::Status Watch(grpc::ServerContext*,
                     grpc::ServerReaderWriter<pb::WatchResponse, pb::WatchRequest>* stream) override {
    pb::WatchRequest request;
    if (!stream->Read(&request)) return grpc::Status::OK;
    Script script;
    {
      std::lock_guard lock(mutex_);
      script = scripts_[std::min(starts_.size(), scripts_.size() - 1)];
      starts_.push_back(request.create_request().start_revision());
    }
    pb::WatchResponse created;
    created.set_created(true);
    stream->Write(created);
    for (const pb::WatchResponse& response : script) stream->Write(response);
    while (stream->Read(&request)) {
    }
    return grpc::Status::OK;
  }

  std::mutex mutex_;
  const std::vector<Script> scripts_;
  const int64_t compacted_;
  std::vector<int64_t> starts_;
  std::unique_ptr<grpc::Server> server_;
  std::string url_;
};

pb::WatchResponse update(int64_t revision, bool with_previous) {
  pb::WatchResponse response;
  response.mutable_header()->set_revision(revision);
  pb::Event& event = *response.add_events();
  event.set_type(pb::Event::PUT);
  pb::KeyValue& now = *event.mutable_kv();
  now.set_key("/a");
  now.set_value("at " + std::to_string(revision));
  now.set_mod_revision(revision);
  now.set_create_revision(2);
  if (!with_previous) return response;
  pb::KeyValue& before = *event.mutable_prev_kv();
  before.set_key("/a");
  before.set_value("at " + std::to_string(revision - 1));
  before.set_mod_revision(revision - 1);
  before.set_create_revision(2);
  return response;
}

TEST(EtcdWatch, an_event_without_its_previous_value_is_asked_for_until_it_comes_whole) {
  ScriptedEtcd etcd({{update(5, true), update(6, false), update(7, true)},
                     {update(6, false)},
                     {update(6, false), update(7, true)},
                     {update(6, true), update(7, true)}},
                    3);
  auto store = open_etcd_at({etcd.url()});
  auto watcher = store->watch({"/", {4}});
  const std::vector<EventRef> events = take(*watcher, 3);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0]->revision.value, 5U);
  EXPECT_EQ(events[1]->revision.value, 6U);
  EXPECT_EQ(*events[1]->previous, "at 5");
  EXPECT_EQ(events[2]->revision.value, 7U);
  EXPECT_EQ(etcd.starts(), (std::vector<int64_t>{5, 6, 6, 6}));
}

TEST(EtcdWatch, ends_where_a_previous_value_has_been_compacted) {
  ScriptedEtcd etcd({{update(5, true), update(6, false)}, {update(6, false)}}, 5);
  auto store = open_etcd_at({etcd.url()});
  auto watcher = store->watch({"/", {4}});
  EXPECT_EQ(take(*watcher, 1).at(0)->revision.value, 5U);
  StoreResult<WatchBatch> end = next(*watcher);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().kind, ErrorKind::Compacted);
}

}  // namespace
}  // namespace holdfast::store::testing
