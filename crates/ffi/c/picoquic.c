/* Hybla and Zenith in the shape of picoquic's congestion controls.
 *
 * picoquic reports bytes and no packet numbers. This adapter therefore numbers packets of its own: what is newly in transit
 * since the last notification left as packets of one MTU, and the oldest of them are acknowledged or lost first. Their time of
 * departure is that of the notification, so delivery rates are exact only on average. */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "bentpipe_cc.h"
#include "picoquic_stub.h"

typedef struct {
    BentpipeCc *cc;
    uint64_t sent_bytes, settled_bytes; /* since the begin */
    uint64_t next, oldest;              /* numbers of packets */
    uint64_t open_bytes;                /* settled bytes of the oldest packet */
    uint32_t mtu;
} Adapter;

static uint64_t nanos(uint64_t micros) { return micros * 1000; }

static void start(picoquic_path_t *path, const char *algorithm, const char *parameters) {
    Adapter *adapter = calloc(1, sizeof *adapter);
    BentpipeCcSettings settings = {.datagram_bytes = (uint32_t)path->send_mtu};
    path->congestion_alg_state = NULL;
    if (adapter == NULL) return;
    adapter->mtu = settings.datagram_bytes;
    if (bentpipe_cc_new(algorithm, parameters, &settings, &adapter->cc) != BENTPIPE_CC_STATUS_OK) {
        fprintf(stderr, "%s\n", bentpipe_cc_last_error());
        free(adapter);
        return;
    }
    path->congestion_alg_state = adapter;
}

/* Reports packets of one MTU for the bytes that left since the last notification. */
static void note_sent(Adapter *adapter, const picoquic_path_t *path, uint64_t newly_settled, uint64_t now) {
    uint64_t sent = adapter->settled_bytes + newly_settled + path->bytes_in_transit;
    for (; adapter->sent_bytes + adapter->mtu <= sent; adapter->sent_bytes += adapter->mtu)
        bentpipe_cc_on_sent(adapter->cc, nanos(now), adapter->next++, adapter->mtu);
}

/* Settles the oldest packets, as many as `bytes` fill. */
static void settle(Adapter *adapter, uint64_t bytes, bool lost) {
    adapter->settled_bytes += bytes;
    adapter->open_bytes += bytes;
    while (adapter->open_bytes >= adapter->mtu && adapter->oldest < adapter->next) {
        uint64_t number = adapter->oldest++;
        adapter->open_bytes -= adapter->mtu;
        if (lost)
            bentpipe_cc_on_lost(adapter->cc, number);
        else
            bentpipe_cc_on_acked(adapter->cc, number);
    }
}

static void set_window(picoquic_cnx_t *cnx, picoquic_path_t *path, const Adapter *adapter) {
    BentpipeCcState state;
    if (bentpipe_cc_state(adapter->cc, &state) != BENTPIPE_CC_STATUS_OK) return;
    path->cwin = state.window;
    if (state.pacing_rate > 0) picoquic_update_pacing_rate(cnx, path, (double)state.pacing_rate, state.burst);
}

static void notify(picoquic_cnx_t *cnx, picoquic_path_t *path, picoquic_congestion_notification_t notification,
                   picoquic_per_ack_state_t *ack, uint64_t now) {
    Adapter *adapter = path->congestion_alg_state;
    if (adapter == NULL) return;
    note_sent(adapter, path, ack->nb_bytes_acknowledged + ack->nb_bytes_newly_lost, now);
    settle(adapter, ack->nb_bytes_newly_lost, true);
    settle(adapter, ack->nb_bytes_acknowledged, false);
    switch (notification) {
    case picoquic_congestion_notification_acknowledgement:
        bentpipe_cc_end_ack(adapter->cc, nanos(now), nanos(ack->rtt_measurement), ack->is_app_limited, 0);
        break;
    case picoquic_congestion_notification_ecn_ec:
        bentpipe_cc_end_ack(adapter->cc, nanos(now), 0, ack->is_app_limited, 1);
        break;
    case picoquic_congestion_notification_repeat:
        bentpipe_cc_end_losses(adapter->cc, nanos(now));
        break;
    case picoquic_congestion_notification_timeout:
        bentpipe_cc_on_persistent_congestion(adapter->cc, nanos(now));
        break;
    case picoquic_congestion_notification_spurious_repeat:
        bentpipe_cc_on_spurious(adapter->cc, nanos(now));
        break;
    default: /* not used: blocked windows, seeds, resets, lost feedback */
        break;
    }
    set_window(cnx, path, adapter);
}

static void init_hybla(picoquic_cnx_t *cnx, picoquic_path_t *path, char const *option, uint64_t now) {
    (void)cnx, (void)now;
    start(path, "hybla", option);
}

static void init_zenith(picoquic_cnx_t *cnx, picoquic_path_t *path, char const *option, uint64_t now) {
    (void)cnx, (void)now;
    start(path, "zenith", option);
}

static void delete_state(picoquic_path_t *path) {
    Adapter *adapter = path->congestion_alg_state;
    if (adapter == NULL) return;
    bentpipe_cc_free(adapter->cc);
    free(adapter);
    path->congestion_alg_state = NULL;
}

static void observe(picoquic_path_t *path, uint64_t *state, uint64_t *parameter) {
    BentpipeCcState now = {0};
    Adapter *adapter = path->congestion_alg_state;
    if (adapter != NULL) bentpipe_cc_state(adapter->cc, &now);
    *state = now.window;
    *parameter = now.ssthresh;
}

const picoquic_congestion_algorithm_t hybla_algorithm = {"hybla", 100, init_hybla, notify, delete_state, observe};
const picoquic_congestion_algorithm_t zenith_algorithm = {"zenith", 101, init_zenith, notify, delete_state, observe};

/* From here on a stand-in for picoquic: one path with a round trip of 600 ms, at whose end everything in transit is acknowledged.
 * The peer's flow control allows 1000 packets. */

#define FLOW_CONTROL 1200000u

static uint64_t usable(const picoquic_path_t *path) {
    return (path->cwin < FLOW_CONTROL ? path->cwin : FLOW_CONTROL) / 1200 * 1200;
}

void picoquic_update_pacing_rate(picoquic_cnx_t *cnx, picoquic_path_t *path, double bytes_per_s, uint64_t quantum) {
    (void)cnx, (void)quantum;
    path->pacing_rate = (uint64_t)bytes_per_s;
}

int main(void) {
    const picoquic_congestion_algorithm_t *algorithms[] = {&hybla_algorithm, &zenith_algorithm};
    for (size_t i = 0; i < 2; i++) {
        picoquic_path_t path = {.cwin = 12000, .send_mtu = 1200};
        uint64_t now = 1000, state, parameter, first_window = path.cwin;
        algorithms[i]->alg_init(NULL, &path, NULL, now);
        if (path.congestion_alg_state == NULL) return 1;
        for (int round = 0; round < 10; round++) {
            path.bytes_in_transit = usable(&path);
            picoquic_per_ack_state_t ack = {0};
            algorithms[i]->alg_notify(NULL, &path, picoquic_congestion_notification_cwin_blocked, &ack, now);
            now += 600000;
            ack.rtt_measurement = 600000;
            ack.nb_bytes_acknowledged = path.bytes_in_transit;
            ack.is_app_limited = path.cwin > FLOW_CONTROL;
            path.bytes_in_transit = 0;
            algorithms[i]->alg_notify(NULL, &path, picoquic_congestion_notification_acknowledgement, &ack, now);
        }
        algorithms[i]->alg_observe(&path, &state, &parameter);
        uint64_t grown = path.cwin;
        path.bytes_in_transit = usable(&path);
        picoquic_per_ack_state_t loss = {.nb_bytes_newly_lost = 1200};
        path.bytes_in_transit -= 1200;
        algorithms[i]->alg_notify(NULL, &path, picoquic_congestion_notification_repeat, &loss, now);
        printf("%-8s window %llu bytes after ten round trips, %llu after a loss, %llu bytes/s\n",
               algorithms[i]->congestion_algorithm_id, (unsigned long long)grown, (unsigned long long)path.cwin,
               (unsigned long long)path.pacing_rate);
        algorithms[i]->alg_delete(&path);
        if (grown <= first_window || state != grown) return 1;
    }
    return 0;
}
