/** Messages about results of actions, in a corner of the page. Loaded after the first rendering. */
import { Notifications, notifications } from '@mantine/notifications';

/** The place of the messages. */
export default function Toasts() {
  return <Notifications position="bottom-right" containerWidth={380} />;
}

/** Shows a message in a colour. Only a message about a success disappears by itself. */
export function show(message: string, color: string): void {
  const autoClose = color === 'indigo' ? 4_000 : false;
  notifications.show({ message, color, autoClose, closeButtonProps: { 'aria-label': 'Close' } });
}
