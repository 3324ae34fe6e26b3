// Certificates for tests, made on the spot.
#pragma once

#include <memory>
#include <string>

namespace io::testing {

struct KeyPair {
  std::string certificate;  // PEM
  std::string key;
};

struct Subject {
  std::string name = "localhost";     // as common name and as DNS name
  std::string address = "127.0.0.1";  // as an alternative name; empty: none
  int valid_from_days = -1;           // from now
  int valid_days = 2;
};

class Authority {
 public:
  explicit Authority(const std::string& name = "test authority");
  ~Authority();

  const std::string& certificate() const { return certificate_; }  // PEM
  KeyPair Issue(const Subject& subject) const;

 private:
  struct Keys;
  std::unique_ptr<Keys> keys_;
  std::string certificate_;
};

}  // namespace io::testing
