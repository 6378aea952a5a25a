// How the runner calls a kernel without knowing its type: pointers to the arguments, sizes to check them against.
#pragma once

template <class T> struct sim_size { static constexpr int value = sizeof(T); };
template <class T> struct sim_size<T*> { static constexpr int value = -8; };
template <class T> struct sim_size<T* const> { static constexpr int value = -8; };
template <class T> struct sim_size<T* __restrict> { static constexpr int value = -8; };
template <class T> struct sim_size<T* const __restrict> { static constexpr int value = -8; };
template <int... I> struct sim_indices {};
template <int N, int... I> struct sim_count_to : sim_count_to<N - 1, N - 1, I...> {};
template <int... I> struct sim_count_to<0, I...> { typedef sim_indices<I...> type; };
template <class T> struct sim_bare { typedef T type; };
template <class T> struct sim_bare<const T> { typedef T type; };

template <class... A> struct sim_signature {
    static constexpr int arity = sizeof...(A);
    static constexpr int sizes[sizeof...(A) + 1] = {sim_size<A>::value..., 0};
};
template <class... A> sim_signature<A...> sim_signature_of(void (*)(A...));

template <class F, class... A, int... I>
SIM_FN void sim_call(F kernel, void** args, sim_signature<A...>, sim_indices<I...>) {
    kernel(*(typename sim_bare<A>::type*)args[I]...);
}

#ifdef SIM_INSTR
#define SIM_WRAPPER __attribute__((no_sanitize("thread"), no_sanitize_coverage))
#else
#define SIM_WRAPPER
#endif

#define SIM_ENTRY(index, ...)                                                                        \
    extern "C" {                                                                                        \
    __attribute__((visibility("default"))) extern const int sim_arity_##index;                          \
    const int sim_arity_##index = decltype(sim_signature_of(&__VA_ARGS__))::arity;                           \
    __attribute__((visibility("default"))) extern const int* const sim_sizes_ptr_##index;               \
    const int* const sim_sizes_ptr_##index = decltype(sim_signature_of(&__VA_ARGS__))::sizes;                \
    __attribute__((visibility("default"))) SIM_WRAPPER void sim_entry_##index(void** args) {            \
        typedef decltype(sim_signature_of(&__VA_ARGS__)) signature;                                          \
        sim_call(&__VA_ARGS__, args, signature(), typename sim_count_to<signature::arity>::type());          \
    }                                                                                                   \
    }
