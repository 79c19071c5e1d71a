/** Messages about results of actions, in a corner of the page. Loaded after the first rendering. */
import { Notifications, notifications } from '@mantine/notifications';

/** The place of the messages. */
export default function Toasts() {
  return <Notifications position="bottom-right" containerWidth={380} />;
}

/** Shows a message in a colour. */
export function show(message: string, color: string): void {
  notifications.show({ message, color, closeButtonProps: { 'aria-label': 'Close' } });
}
