/**
 * Ids of built-in sinks: the topics and the event bus of a cell on AWS, the topic of a self-hosted installation, and customer
 * notifications. No endpoint can have them.
 */
export const BUILT_IN_SINKS = ['topic', 'sns-standard', 'sns', 'event-bus', 'notifications'] as const;
