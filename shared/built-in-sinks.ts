/**
 * Ids of built-in sinks: the topics and the event bus of a cell on AWS, the topic of a self-hosted installation, and customer
 * notifications. No endpoint can have them.
 */
export const BUILT_IN_SINKS = ['topic', 'sns-standard', 'sns', 'event-bus', 'notifications'] as const;

/** Kinds of endpoints, which users create. Other kinds of sinks are built in. */
export const ENDPOINT_KINDS = ['webhook', 'sqs'] as const;
export type EndpointKind = (typeof ENDPOINT_KINDS)[number];

/** Reports whether a sink of this kind is an endpoint, and not built in. */
export const isEndpointKind = (kind: unknown): kind is EndpointKind =>
  ENDPOINT_KINDS.some((known) => known === kind);
