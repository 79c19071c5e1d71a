/** The pages of Health: all accounts and endpoints, one account, one endpoint. */
import { Route, Switch } from 'wouter';
import { NotFound } from '../components.tsx';
import { decodeSegment } from '../urls.ts';
import { AccountPage } from './AccountPage.tsx';
import { EndpointPage } from './EndpointPage.tsx';
import { OverviewPage } from './OverviewPage.tsx';

export default function HealthPages() {
  return (
    <Switch>
      <Route path="/health" component={OverviewPage} />
      <Route path="/health/accounts/:id">{({ id }) => <AccountPage key={id} id={decodeSegment(id)} />}</Route>
      <Route path="/health/endpoints/:region/:id">
        {({ region, id }) => (
          <EndpointPage key={`${region}/${id}`} region={decodeSegment(region)} id={decodeSegment(id)} />
        )}
      </Route>
      <Route>
        <NotFound href="/health">Health</NotFound>
      </Route>
    </Switch>
  );
}
