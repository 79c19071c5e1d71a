/** Dialogs with input. */
import { Modal, type ModalProps } from '@mantine/core';
import { leavePage } from './unsaved-changes.ts';

/**
 * A dialog with input, which must not be lost: a click outside does not close it, and closing it with unsaved changes requires
 * confirmation.
 */
export function InputDialog({ onClose, ...props }: ModalProps) {
  return (
    <Modal
      closeOnClickOutside={false}
      {...props}
      onClose={() => {
        // Escape reaches all open dialogs, and closes only the one above.
        if (document.querySelectorAll('[role="dialog"]').length < 2) leavePage(onClose);
      }}
    />
  );
}
