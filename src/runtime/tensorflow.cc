#include "runtime/tensorflow.h"

#include <dlfcn.h>

namespace runtime {
namespace {

using base::Result;

std::unexpected<base::Error> NotUsable(const std::string& text) {
  return std::unexpected(base::Error(base::ErrorKind::kInvalid, text));
}

}  // namespace

Result<TensorFlow> OpenTensorFlow(const std::string& directory) {
  // The second needs the first, and finds it already there. Local, so that no symbol of theirs is
  // taken for one of ours.
  void* library = nullptr;
  for (const char* name : {"/libtensorflow_framework.so.2", "/libtensorflow_cc.so.2"}) {
    library = dlopen((directory + name).c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (!library) return NotUsable(std::string("TensorFlow's library does not load: ") + dlerror());
  }
  TensorFlow out{};
  const char* missing = nullptr;
  const auto find = [&]<typename Function>(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    if (!function) missing = name;
  };
  find(out.Version, "TF_Version");
  find(out.NewStatus, "TF_NewStatus");
  find(out.DeleteStatus, "TF_DeleteStatus");
  find(out.GetCode, "TF_GetCode");
  find(out.Message, "TF_Message");
  find(out.NewSessionOptions, "TF_NewSessionOptions");
  find(out.DeleteSessionOptions, "TF_DeleteSessionOptions");
  find(out.SetConfig, "TF_SetConfig");
  find(out.NewGraph, "TF_NewGraph");
  find(out.LoadSessionFromSavedModel, "TF_LoadSessionFromSavedModel");
  find(out.GraphOperationByName, "TF_GraphOperationByName");
  find(out.OperationNumOutputs, "TF_OperationNumOutputs");
  find(out.SessionRun, "TF_SessionRun");
  find(out.AllocateTensor, "TF_AllocateTensor");
  find(out.DeleteTensor, "TF_DeleteTensor");
  find(out.TensorMaybeMove, "TF_TensorMaybeMove");
  find(out.TensorData, "TF_TensorData");
  find(out.TensorByteSize, "TF_TensorByteSize");
  find(out.TensorType, "TF_TensorType");
  find(out.NumDims, "TF_NumDims");
  find(out.Dim, "TF_Dim");
  find(out.StringInit, "TF_StringInit");
  find(out.StringCopy, "TF_StringCopy");
  find(out.StringGetDataPointer, "TF_StringGetDataPointer");
  find(out.StringGetSize, "TF_StringGetSize");
  find(out.StringDealloc, "TF_StringDealloc");
  if (missing)
    return NotUsable(std::string("TensorFlow's library has no ") + missing +
                     ": serving needs TensorFlow 2.12 or newer");
  return out;
}

}  // namespace runtime
