/** What is seen in place of something that broke, or whose script could not be loaded. */
import { Button } from '@mantine/core';
import { Component, type ReactNode } from 'react';
import { useLocation } from 'wouter';
import { Note, Page } from '../components.tsx';

/** Keeps a fault of a page to that page: another one can be gone to, and this one loaded again. */
export function PageErrorBoundary({ children }: { readonly children: ReactNode }) {
  const [location] = useLocation();
  return (
    <ErrorBoundary key={location} instead={<BrokenPage />}>
      {children}
    </ErrorBoundary>
  );
}

/** Shows something else in place of what broke. */
export class ErrorBoundary extends Component<{ readonly instead: ReactNode; readonly children: ReactNode }> {
  override state = { broken: false };

  static getDerivedStateFromError(): { readonly broken: boolean } {
    return { broken: true };
  }

  override render(): ReactNode {
    return this.state.broken ? this.props.instead : this.props.children;
  }
}

function BrokenPage() {
  const again = (
    <Button size="xs" variant="default" onClick={() => window.location.reload()}>
      Load it again
    </Button>
  );
  return (
    <Page title="This page can’t be shown">
      <Note tone="bad" live actions={again}>
        Something in it went wrong, or it was replaced by a newer version since you came.
      </Note>
    </Page>
  );
}
