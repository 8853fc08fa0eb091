/* Names of picoquic's interface for congestion controls, in our own words: as far as picoquic.c uses them.
 * A program over picoquic includes picoquic_internal.h instead. */

#ifndef PICOQUIC_STUB_H
#define PICOQUIC_STUB_H

#include <stdint.h>

typedef struct st_picoquic_cnx_t picoquic_cnx_t;

/* A path. Times are microseconds, sizes are bytes. */
typedef struct st_picoquic_path_t {
    uint64_t cwin;
    uint64_t bytes_in_transit;
    uint64_t pacing_rate; /* bytes per second, as picoquic_update_pacing_rate sets it */
    uint64_t send_mtu;
    void *congestion_alg_state;
} picoquic_path_t;

typedef enum {
    picoquic_congestion_notification_acknowledgement,
    picoquic_congestion_notification_repeat,
    picoquic_congestion_notification_timeout,
    picoquic_congestion_notification_spurious_repeat,
    picoquic_congestion_notification_rtt_measurement,
    picoquic_congestion_notification_ecn_ec,
    picoquic_congestion_notification_cwin_blocked,
    picoquic_congestion_notification_seed_cwin,
    picoquic_congestion_notification_reset,
    picoquic_congestion_notification_lost_feedback
} picoquic_congestion_notification_t;

typedef struct st_picoquic_per_ack_state_t {
    uint64_t rtt_measurement;
    uint64_t nb_bytes_acknowledged;
    uint64_t nb_bytes_newly_lost;
    unsigned int is_app_limited : 1;
} picoquic_per_ack_state_t;

typedef struct st_picoquic_congestion_algorithm_t {
    char const *congestion_algorithm_id;
    uint8_t congestion_algorithm_number;
    void (*alg_init)(picoquic_cnx_t *, picoquic_path_t *, char const *option, uint64_t now);
    void (*alg_notify)(picoquic_cnx_t *, picoquic_path_t *, picoquic_congestion_notification_t,
                       picoquic_per_ack_state_t *, uint64_t now);
    void (*alg_delete)(picoquic_path_t *);
    void (*alg_observe)(picoquic_path_t *, uint64_t *state, uint64_t *parameter);
} picoquic_congestion_algorithm_t;

void picoquic_update_pacing_rate(picoquic_cnx_t *, picoquic_path_t *, double bytes_per_s, uint64_t quantum);

#endif
