// TensorFlow's C API, out of the libraries that a Python package brought.
//
// Declared here by hand, as far as it is used: it is stable over all of 2.x, and its headers are
// not on every machine. The libraries are opened, never linked, so which TensorFlow it is is
// decided when the program starts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace runtime {

struct TF_Status;
struct TF_SessionOptions;
struct TF_Session;
struct TF_Graph;
struct TF_Operation;
struct TF_Tensor;
struct TF_Buffer;
struct TF_Output {
  TF_Operation* oper;
  int index;
};
struct TF_TString {  // 24 bytes, whose inside is TensorFlow's
  alignas(8) unsigned char bytes[24];
};

struct TensorFlow {
  const char* (*Version)();
  TF_Status* (*NewStatus)();
  void (*DeleteStatus)(TF_Status*);
  int (*GetCode)(const TF_Status*);
  const char* (*Message)(const TF_Status*);
  TF_SessionOptions* (*NewSessionOptions)();
  void (*DeleteSessionOptions)(TF_SessionOptions*);
  void (*SetConfig)(TF_SessionOptions*, const void*, size_t, TF_Status*);
  TF_Graph* (*NewGraph)();
  TF_Session* (*LoadSessionFromSavedModel)(const TF_SessionOptions*, const TF_Buffer*, const char*,
                                           const char* const*, int, TF_Graph*, TF_Buffer*,
                                           TF_Status*);
  TF_Operation* (*GraphOperationByName)(TF_Graph*, const char*);
  int (*OperationNumOutputs)(TF_Operation*);
  void (*SessionRun)(TF_Session*, const TF_Buffer*, const TF_Output*, TF_Tensor* const*, int,
                     const TF_Output*, TF_Tensor**, int, const TF_Operation* const*, int,
                     TF_Buffer*, TF_Status*);
  TF_Tensor* (*AllocateTensor)(int, const int64_t*, int, size_t);
  void (*DeleteTensor)(TF_Tensor*);
  TF_Tensor* (*TensorMaybeMove)(TF_Tensor*);  // itself, if nobody else has its memory
  void* (*TensorData)(const TF_Tensor*);
  size_t (*TensorByteSize)(const TF_Tensor*);
  int (*TensorType)(const TF_Tensor*);
  int (*NumDims)(const TF_Tensor*);
  int64_t (*Dim)(const TF_Tensor*, int);
  void (*StringInit)(TF_TString*);
  void (*StringCopy)(TF_TString*, const char*, size_t);
  const char* (*StringGetDataPointer)(const TF_TString*);
  size_t (*StringGetSize)(const TF_TString*);
  void (*StringDealloc)(TF_TString*);
};

// `directory` is that of the Python package. The libraries stay open for good.
base::Result<TensorFlow> OpenTensorFlow(const std::string& directory);

}  // namespace runtime
