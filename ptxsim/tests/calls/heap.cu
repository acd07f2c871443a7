//! {"block": [32], "comment": "a list in the heap for each thread; the sum of its values",
//!  "buffers": [{"name": "out", "type": "s32", "count": 32, "expect": [
//!    0, 0, 1, 3, 6, 10, 15, 21, 28, 36, 45, 55, 66, 78, 91, 105, 120, 136, 153, 171, 190, 210, 231, 253, 276, 300, 325, 351,
//!    378, 406, 435, 465]}], "params": [{"buffer": "out"}]}
struct Node {
  int value;
  Node* next;
};

extern "C" __global__ void sum_lists(int* out) {
  Node* list = nullptr;
  for (int i = 0; i < threadIdx.x; ++i) list = new Node{i, list};
  int sum = 0;
  while (list != nullptr) {
    Node* next = list->next;
    sum += list->value;
    delete list;
    list = next;
  }
  free(nullptr);
  out[threadIdx.x] = sum;
}
