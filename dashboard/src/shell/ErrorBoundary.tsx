/** Replaces parts of the page that failed to render or to load. */
import { Button } from '@mantine/core';
import { Component, type ReactNode } from 'react';
import { useLocation } from 'wouter';
import { Note, Page } from '../components.tsx';

/** Limits an error to its page, so that the user can open another page or reload. */
export function PageErrorBoundary({ children }: { readonly children: ReactNode }) {
  const [location] = useLocation();
  return (
    <ErrorBoundary key={location} fallback={<FailedPage />}>
      {children}
    </ErrorBoundary>
  );
}

/** Renders `instead` after an error in its children. */
export class ErrorBoundary extends Component<{ readonly fallback: ReactNode; readonly children: ReactNode }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError(): { readonly hasFailed: boolean } {
    return { hasFailed: true };
  }

  override render(): ReactNode {
    return this.state.hasFailed ? this.props.fallback : this.props.children;
  }
}

function FailedPage() {
  const reload = (
    <Button size="xs" onClick={() => window.location.reload()}>
      Reload
    </Button>
  );
  return (
    <Page title="Page failed to load">
      <Note tone="bad" live actions={reload}>
        An error occurred, the connection failed, or the dashboard was updated. Reload to continue.
      </Note>
    </Page>
  );
}
