/** Messages about results of actions, in a corner of the page. Loaded after the first rendering. */
import { Notifications, notifications } from '@mantine/notifications';
import type { Tone } from './components.tsx';

/** The place of the messages. */
export default function Toasts() {
  return <Notifications position="bottom-right" containerWidth={380} />;
}

const COLOURS: Partial<Record<Tone, string>> = { bad: 'red', warn: 'orange' };

/** Shows a message. */
export function show(message: string, tone: Tone): void {
  notifications.show({
    message,
    color: COLOURS[tone] ?? 'indigo',
    closeButtonProps: { 'aria-label': 'Close' },
  });
}
