/* Congestion control for transports that number their packets. Written by cbindgen from crates/ffi/src.
 *
 * A handle is the sender of one path of one connection. Times are nanoseconds of the caller's clock, which never runs
 * backwards. Sizes are bytes. Any thread may use a handle, but only one at a time; different handles share nothing but
 * the memory that they were made with. */

#ifndef BENTPIPE_CC_H
#define BENTPIPE_CC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 Bytes of a phase, the final NUL included. A longer name is cut.
 */
#define BENTPIPE_CC_PHASE_BYTES 32

/*
 Time of an event that never comes.
 */
#define BENTPIPE_CC_NEVER UINT64_MAX

/*
 Result of a call. Every value except BENTPIPE_CC_STATUS_OK has a message in bentpipe_cc_last_error.
 */
typedef enum {
  /*
   Success.
   */
  BENTPIPE_CC_STATUS_OK = 0,
  /*
   No algorithm has this name or index.
   */
  BENTPIPE_CC_STATUS_UNKNOWN_ALGORITHM = 1,
  /*
   The parameters are not a JSON object of this algorithm's parameters.
   */
  BENTPIPE_CC_STATUS_INVALID_PARAMETERS = 2,
  /*
   The algorithm needs what no packet transport offers, such as probes.
   */
  BENTPIPE_CC_STATUS_REFUSED = 3,
  /*
   The packet number is not above all earlier ones. Nothing was changed.
   */
  BENTPIPE_CC_STATUS_NOT_RISING = 4,
  /*
   An argument is NULL, a string is not UTF-8, or a buffer is too small.
   */
  BENTPIPE_CC_STATUS_INVALID_ARGUMENT = 5,
  /*
   The algorithm failed by a defect of the library. The handle accepts only bentpipe_cc_free.
   */
  BENTPIPE_CC_STATUS_PANICKED = 6,
} BentpipeCcStatus;

/*
 Congestion control of one path. Any thread may use a handle, but only one at a time. Different handles share nothing but
 their memory.
 */
typedef struct BentpipeCc BentpipeCc;

/*
 Memory that the connections to one destination share. Any thread may use it at any time. It lives until it and every handle that was
 made with it are freed.
 */
typedef struct BentpipeCcMemory BentpipeCcMemory;

/*
 Properties of a path. Zero for `datagram_bytes` or `initial_window` means the default.
 */
typedef struct {
  /*
   Bytes of a full datagram, as bentpipe_cc_on_sent counts them; default 1200.
   */
  uint32_t datagram_bytes;
  /*
   Initial window in datagrams; default 10.
   */
  uint32_t initial_window;
  /*
   True to send windows of algorithms without a rate in bursts; false paces them.
   */
  bool unpaced;
  /*
   True if packets leave ECN-capable and marks are reported.
   */
  bool ecn;
  /*
   Seed of the algorithm's random numbers, different for each connection.
   */
  uint64_t seed;
  /*
   Memory that the connections to this destination share; NULL for none.
   */
  const BentpipeCcMemory *memory;
  /*
   Careful Resume (RFC 9959): the nanoseconds after which a saved capacity is deleted. 0 switches it off. It needs a memory, and the
   caller must obey bentpipe_cc_departure.
   */
  uint64_t careful_resume_ns;
} BentpipeCcSettings;

/*
 State of a path.
 */
typedef struct {
  /*
   Bytes that may be in flight, at least one datagram.
   */
  uint64_t window;
  /*
   Bytes in flight.
   */
  uint64_t in_flight;
  /*
   Slow-start threshold in bytes; BENTPIPE_CC_NEVER if there is none.
   */
  uint64_t ssthresh;
  /*
   Pacing rate in bytes per second; 0 if only the window limits the sender.
   */
  uint64_t pacing_rate;
  /*
   Bytes that may leave back to back at the pacing rate.
   */
  uint64_t burst;
  /*
   Smoothed round-trip time in nanoseconds; 0 before the first sample.
   */
  uint64_t srtt_ns;
  /*
   Time of the next bentpipe_cc_on_timeout; BENTPIPE_CC_NEVER for none.
   */
  uint64_t timeout_ns;
  /*
   Acknowledgements and losses of unknown or settled packets.
   */
  uint64_t ignored;
  /*
   True if packets must leave as ECT(1).
   */
  bool ect1;
  /*
   Name of the algorithm's phase.
   */
  char phase[BENTPIPE_CC_PHASE_BYTES];
} BentpipeCcState;

/*
 Capacity of a path, as the last connection found it.
 */
typedef struct {
  /*
   Bytes acknowledged within one round trip; 0 if no capacity is saved.
   */
  uint64_t bytes;
  /*
   Smallest round-trip time in nanoseconds.
   */
  uint64_t min_rtt_ns;
  /*
   Time of the save on the caller's clock.
   */
  uint64_t saved_at_ns;
} BentpipeCcCapacity;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Returns the version of the library, such as "0.1.0".
 */
const char *bentpipe_cc_version(void);

/*
 Returns the reason of the last failure in this thread, one sentence; empty before the first. It is valid until the next failure
 in this thread.
 */
const char *bentpipe_cc_last_error(void);

/*
 Writes the name of the algorithm with this index into `name`, which has `size` bytes. The indices begin with 0;
 BENTPIPE_CC_STATUS_UNKNOWN_ALGORITHM is the end of the list.

 # Safety
 `name` points to `size` writable bytes.
 */
BentpipeCcStatus bentpipe_cc_algorithm(size_t index, char *name, size_t size);

/*
 Makes the sender of one path and writes its handle into `*cc`. `parameters` is a JSON object of the algorithm's parameters, or
 NULL for their defaults. `settings` may be NULL for the defaults, and is not used after the call. On failure `*cc` is NULL.

 # Safety
 `algorithm` and `parameters` are NUL-terminated strings, `settings` and its memory are valid, and `cc` is writable.
 */
BentpipeCcStatus bentpipe_cc_new(const char *algorithm,
                                 const char *parameters,
                                 const BentpipeCcSettings *settings,
                                 BentpipeCc **cc);

/*
 Frees a handle; NULL is ignored.

 # Safety
 `cc` is a handle that was not freed.
 */
void bentpipe_cc_free(BentpipeCc *cc);

/*
 Handles the complete handshake and its round trip; 0 if it gave no sample.

 # Safety
 `cc` is a handle.
 */
BentpipeCcStatus bentpipe_cc_established(BentpipeCc *cc, uint64_t now_ns, uint64_t rtt_ns);

/*
 Returns the time at which a packet of `bytes` may leave, at least `now_ns`. BENTPIPE_CC_NEVER: not before another event, because
 the window is full, or after a failure. To be asked before each packet.

 # Safety
 `cc` is a handle.
 */
uint64_t bentpipe_cc_departure(BentpipeCc *cc,
                               uint64_t now_ns,
                               uint32_t bytes);

/*
 Handles the departure of a packet that the peer must acknowledge. BENTPIPE_CC_STATUS_NOT_RISING if `number` is not above all earlier
 numbers.

 # Safety
 `cc` is a handle.
 */
BentpipeCcStatus bentpipe_cc_on_sent(BentpipeCc *cc,
                                     uint64_t now_ns,
                                     uint64_t number,
                                     uint32_t bytes);

/*
 Handles a packet that an ACK newly acknowledges; bentpipe_cc_end_ack follows. An unknown number is ignored and counted.

 # Safety
 `cc` is a handle.
 */
BentpipeCcStatus bentpipe_cc_on_acked(BentpipeCc *cc, uint64_t number);

/*
 Handles a packet that the transport declares lost. bentpipe_cc_end_ack, bentpipe_cc_end_losses or
 bentpipe_cc_on_persistent_congestion follows. An unknown number is ignored and counted.

 # Safety
 `cc` is a handle.
 */
BentpipeCcStatus bentpipe_cc_on_lost(BentpipeCc *cc, uint64_t number);

/*
 Handles a packet that counts no longer, because its keys were discarded (RFC 9002 section 6.4) or because it was a lost probe of
 the path MTU. An unknown number is ignored and counted.

 # Safety
 `cc` is a handle.
 */
BentpipeCcStatus bentpipe_cc_on_discarded(BentpipeCc *cc,
                                          uint64_t number);

/*
 Handles the end of an ACK. `rtt_ns` is its round-trip sample without the peer's ACK delay; 0 for none. `app_limited` says that
 the application or the peer's flow control limited the sender since the last ACK. `marks` is the number of packets newly
 reported with ECN-CE.

 # Safety
 `cc` is a handle.
 */
BentpipeCcStatus bentpipe_cc_end_ack(BentpipeCc *cc,
                                     uint64_t now_ns,
                                     uint64_t rtt_ns,
                                     bool app_limited,
                                     uint32_t marks);

/*
 Handles the end of losses that a timer found.

 # Safety
 `cc` is a handle.
 */
BentpipeCcStatus bentpipe_cc_end_losses(BentpipeCc *cc, uint64_t now_ns);

/*
 Handles persistent congestion (RFC 9002 section 7.6), or a timeout that declares everything in flight lost.

 # Safety
 `cc` is a handle.
 */
BentpipeCcStatus bentpipe_cc_on_persistent_congestion(BentpipeCc *cc, uint64_t now_ns);

/*
 Handles the proof that every packet of the last loss episode had arrived: its reduction is undone, once.

 # Safety
 `cc` is a handle.
 */
BentpipeCcStatus bentpipe_cc_on_spurious(BentpipeCc *cc, uint64_t now_ns);

/*
 Sets the bytes of a full datagram after a change of the path MTU. Window and rate in bytes stay as they are.

 # Safety
 `cc` is a handle.
 */
BentpipeCcStatus bentpipe_cc_set_datagram_bytes(BentpipeCc *cc, uint32_t bytes);

/*
 Handles the begin (`outage` true) or the end of an outage that the satellite link announced.

 # Safety
 `cc` is a handle.
 */
BentpipeCcStatus bentpipe_cc_on_outage(BentpipeCc *cc, uint64_t now_ns, bool outage);

/*
 Handles the time `timeout_ns` of the state. `*ask_for_ack` becomes true if a packet that the peer acknowledges, such as a PING,
 must leave. `ask_for_ack` may be NULL.

 # Safety
 `cc` is a handle, and `ask_for_ack` is writable.
 */
BentpipeCcStatus bentpipe_cc_on_timeout(BentpipeCc *cc,
                                        uint64_t now_ns,
                                        bool *ask_for_ack);

/*
 Handles the end of the connection, before bentpipe_cc_free.

 # Safety
 `cc` is a handle.
 */
BentpipeCcStatus bentpipe_cc_close(BentpipeCc *cc, uint64_t now_ns);

/*
 Writes the present state into `*state`. To be read after every event.

 # Safety
 `cc` is a handle, and `state` is writable.
 */
BentpipeCcStatus bentpipe_cc_state(BentpipeCc *cc, BentpipeCcState *state);

/*
 Makes an empty memory for one destination.
 */
BentpipeCcMemory *bentpipe_cc_memory_new(void);

/*
 Frees a memory; NULL is ignored. Handles that were made with it keep what they share.

 # Safety
 `memory` is a memory that was not freed.
 */
void bentpipe_cc_memory_free(BentpipeCcMemory *memory);

/*
 Writes the saved capacity into `*capacity`, so that the caller can keep it in a file. Connections save it while they run and in
 bentpipe_cc_close, if they use Careful Resume.

 # Safety
 `memory` is a memory, and `capacity` is writable.
 */
BentpipeCcStatus bentpipe_cc_memory_capacity(const BentpipeCcMemory *memory,
                                             BentpipeCcCapacity *capacity);

/*
 Saves a capacity that an earlier process found. 0 bytes delete the saved one.

 # Safety
 `memory` is a memory.
 */
BentpipeCcStatus bentpipe_cc_memory_set_capacity(BentpipeCcMemory *memory, BentpipeCcCapacity capacity);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BENTPIPE_CC_H */
