// HTTP for the routes: loopback by default, bounded in every way. libmicrohttpd parses; what is asked is answered by
// worker threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "qkv/routes/router.h"

namespace qkv::serve {

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8417;         // 0: any free one
  std::string token = {};  // when given, every request must know it
  size_t max_body = 1 << 20;
  int connections = 96;         // at once; beyond that the one that dawdles longest is closed
  int computing = 2;            // heavy routes at work at once
  int waiting = 48;             // heavy routes waiting for their turn; more are told to come back (503)
  double turn_seconds = 8;      // longest wait for a turn
  double read_seconds = 10;     // a request that takes longer to arrive is given up
  double answer_seconds = 30;   // and so is an answer that takes longer to be taken
  double request_seconds = 17;  // from the arrival of a request to its answer
  int64_t memory = 384 << 20;   // bytes of all tensors together
  int64_t unsent = 128 << 20;   // bytes of all answers not yet taken
};

/// Every answer given before its request was read in full, and every refusal, ends the connection.
class HttpServer {
 public:
  /// The router must outlive the server.
  HttpServer(const HttpOptions& options, const routes::Router& router);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Takes the port. Throws IoError ("port 8417 is in use; …"). Returns the port.
  int bind();
  /// Serves until stop(), which may be called from any thread; what is being computed then is stopped.
  void run();
  void stop();

  /// The parts of run(): waits at most that long for something to do and does it.
  void turn(int milliseconds);
  /// Serves a connected socket as if it had come in at the port. Not while another thread is in run() or turn().
  void adopt(int socket);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qkv::serve
