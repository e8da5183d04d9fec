// Finds parents whose port is chosen at their start.
#pragma once

#include <filesystem>
#include <memory>

#include "link/carrier.h"

namespace orla::node {

// Passes everything on to `carrier`; an address with port 0 is replaced, at every connect, by the one the parent wrote
// into the state directory (node/state_directory.h).
class ResolvingUplink final : public link::UplinkCarrier {
 public:
  ResolvingUplink(std::unique_ptr<link::UplinkCarrier> carrier, std::filesystem::path state)
      : carrier_(std::move(carrier)), state_(std::move(state)) {}
  void set_events(Events events) override { carrier_->set_events(std::move(events)); }
  link::ConnectionId connect(const std::string& address, const std::string& peer) override;
  void send(link::ConnectionId connection, link::UpMessage message) override {
    carrier_->send(connection, std::move(message));
  }
  std::size_t queued_bytes(link::ConnectionId connection) const override { return carrier_->queued_bytes(connection); }
  void close(link::ConnectionId connection) override { carrier_->close(connection); }

 private:
  std::unique_ptr<link::UplinkCarrier> carrier_;
  std::filesystem::path state_;
};

}  // namespace orla::node
