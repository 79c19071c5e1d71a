/**
 * Ids of sinks that are built in: the topics of a cell on AWS, the one of a single machine, and what tells customers. No
 * endpoint can have them.
 */
export const BUILT_IN_SINKS = ['topic', 'sns-standard', 'sns', 'notifications'] as const;
