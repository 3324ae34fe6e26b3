#include "io/testing/server.h"

#include <csignal>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/result.h"
#include "base/strings.h"

namespace io::testing {
namespace {

SSL_CTX* NewContext(const ServerOptions& options) {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  BIO* bio = BIO_new_mem_buf(options.identity->certificate.data(), -1);
  X509* certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  bio = BIO_new_mem_buf(options.identity->key.data(), -1);
  EVP_PKEY* key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  CHECK(SSL_CTX_use_certificate(context, certificate) == 1);
  CHECK(SSL_CTX_use_PrivateKey(context, key) == 1);
  X509_free(certificate);
  EVP_PKEY_free(key);
  if (options.old_tls) {
    SSL_CTX_set_security_level(context, 0);
    SSL_CTX_set_max_proto_version(context, TLS1_1_VERSION);
  }
  if (!options.client_ca.empty()) {
    bio = BIO_new_mem_buf(options.client_ca.data(), -1);
    X509* ca = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
    BIO_free(bio);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ca);
    SSL_CTX_add_client_CA(context, ca);
    X509_free(ca);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  }
  return context;
}

}  // namespace

std::string Connection::ReadSome() {
  if (!read_.empty()) return std::exchange(read_, {});
  char bytes[16384];
  const ssize_t count = tls_ ? SSL_read(static_cast<SSL*>(tls_), bytes, sizeof bytes)
                             : recv(fd_.get(), bytes, sizeof bytes, 0);
  return count > 0 ? std::string(bytes, static_cast<size_t>(count)) : "";
}

std::string Connection::ReadExactly(size_t count) {
  std::string text;
  while (text.size() < count) {
    const std::string more = ReadSome();
    if (more.empty()) return text;
    text += more;
  }
  read_ = text.substr(count);
  text.resize(count);
  return text;
}

std::string Connection::ReadRequest() {
  std::string text;
  size_t wanted = std::string::npos;
  while (text.size() < wanted) {
    const std::string more = ReadSome();
    if (more.empty()) return "";
    text += more;
    const size_t head = text.find("\r\n\r\n");
    if (wanted != std::string::npos || head == std::string::npos) continue;
    const size_t at = base::Lower(text.substr(0, head)).find("content-length: ");
    wanted = head + 4 + (at == std::string::npos ? 0 : std::stoul(text.substr(at + 16)));
  }
  read_ = text.substr(wanted);
  text.resize(wanted);
  return text;
}

void Connection::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count =
        tls_ ? SSL_write(static_cast<SSL*>(tls_), bytes.data(), static_cast<int>(bytes.size()))
             : send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

void Connection::Answer(int status, std::string_view body, std::string_view headers) {
  Write(fmt::format("HTTP/1.1 {} Said\r\nContent-Length: {}\r\n{}\r\n{}", status, body.size(),
                    headers, body));
}

void Connection::WaitUntilClosed() {
  while (!ReadSome().empty()) {
  }
}

std::string Connection::peer_name() const {
  if (!tls_) return "";
  X509* certificate = SSL_get1_peer_certificate(static_cast<SSL*>(tls_));
  if (!certificate) return "";
  char name[256] = {};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof name);
  X509_free(certificate);
  return name;
}

Server::Server(Handler handler, ServerOptions options)
    : handler_(std::move(handler)), options_(std::move(options)) {
  std::signal(SIGPIPE, SIG_IGN);  // SSL_write has no other way
  if (options_.identity) context_ = NewContext(options_);
  listener_ = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  CHECK(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  CHECK(listen(listener_.get(), 128) == 0);
  socklen_t size = sizeof address;
  CHECK(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::jthread([this] { Accept(); });
}

Server::~Server() {
  ending_ = true;
  shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  {
    const std::lock_guard lock(mutex_);
    for (Connection& connection : open_) shutdown(connection.fd_.get(), SHUT_RDWR);
  }
  threads_.clear();
  for (Connection& connection : open_) SSL_free(static_cast<SSL*>(connection.tls_));
  SSL_CTX_free(static_cast<SSL_CTX*>(context_));
}

std::string Server::url(const std::string& path) const {
  return fmt::format("{}://127.0.0.1:{}{}", options_.identity ? "https" : "http", port_, path);
}

void Server::Accept() {
  while (!ending_) {
    Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd.valid() || ending_) continue;
    ++connections_;
    const std::lock_guard lock(mutex_);
    Connection& connection = open_.emplace_back();
    connection.fd_ = std::move(fd);
    if (context_) {
      connection.tls_ = SSL_new(static_cast<SSL_CTX*>(context_));
      SSL_set_fd(static_cast<SSL*>(connection.tls_), connection.fd_.get());
    }
    threads_.emplace_back([this, &connection] { Serve(connection); });
  }
}

void Server::Serve(Connection& connection) {
  if (!connection.tls_ || SSL_accept(static_cast<SSL*>(connection.tls_)) == 1) {
    handler_(connection);
  }
  shutdown(connection.fd_.get(), SHUT_RDWR);
}

}  // namespace io::testing
