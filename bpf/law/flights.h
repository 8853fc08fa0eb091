/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * In-flight data and losses at the time when a segment left. The kernel records with each segment only the data delivered until
 * then. A short history of ACKs adds the other values, with a resolution of a sixteenth of a window.
 */
#ifndef BP_FLIGHTS_H
#define BP_FLIGHTS_H

#define BP_FLIGHTS 32

struct bp_flight {
	bp_u32 delivered;
	bp_u32 lost;
	bp_u32 in_flight;
};

struct bp_flights {
	struct bp_flight diary[BP_FLIGHTS];
	bp_u32 next;
	bp_u32 count;
};

/*
 * Records in the newest entry how many segments were in flight when segments left after it. Adds an entry after each sixteenth
 * of a window delivered.
 */
BP_APART bp_flights_note(struct bp_flights *flights, bp_u32 delivered, bp_u32 lost, bp_u32 before)
{
	struct bp_flight *last, *entry;

	if (!flights)
		return 0;
	last = &flights->diary[(flights->next - 1) & (BP_FLIGHTS - 1)];
	if (flights->count && !last->in_flight)
		last->in_flight = before;
	if (flights->count && delivered - last->delivered < before / 16)
		return 0;
	entry = &flights->diary[flights->next & (BP_FLIGHTS - 1)];
	entry->delivered = delivered;
	entry->lost = lost;
	entry->in_flight = 0;
	flights->next++;
	flights->count = BP_MIN(flights->count + 1, BP_FLIGHTS);
	return 0;
}

/* Returns the index of the newest entry made before `prior` segments were delivered, or -1 if there is none. */
BP_APART bp_flights_find(const struct bp_flights *flights, bp_u32 prior)
{
	bp_u32 age, place;

	if (!flights)
		return -1;
	for (age = 1; age <= BP_FLIGHTS; age++) {
		place = (flights->next - age) & (BP_FLIGHTS - 1);
		if (age > flights->count)
			return -1;
		if (!bp_after(flights->diary[place].delivered, prior))
			return place;
	}
	return -1;
}

#endif
