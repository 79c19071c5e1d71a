/** Notifications of a host. Loaded when it is first needed, which makes a start shorter. */
export { createNotificationsSink } from '../shared/notifications/notifications-sink.ts';
export { syncOwnUser } from '../shared/notifications/own-user.ts';
export { sendDue } from '../shared/notifications/sender.ts';
export { unfollowAccount } from '../shared/notifications/settings.ts';
