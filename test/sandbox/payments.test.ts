/** Payments in views that lag behind. */
import { describe, expect, it } from 'vitest';
import { createPayment, settlePayment } from '../../sandbox/world/payments.ts';
import { startService } from '../support/ordering-api.ts';

/** Starts a service whose payments are a minute old, and a way to let time pass. */
async function startLagging() {
  const service = await startService({ freedom: { lagSeconds: { transactions: 60 } } });
  const pass = (seconds: number) => {
    service.clock.now += seconds * 1000;
  };
  pass(600);
  return { ...service, pass };
}

describe('payments in a view that lags', () => {
  it('are absent, then pending until their settlement is as old as the lag, if the control panel creates and settles them', async () => {
    const { us, pass, sandbox } = await startLagging();
    const ask = (path: string, body: object) =>
      fetch(`${sandbox.adminUrl}${path}`, {
        method: 'POST',
        body: JSON.stringify({ region: 'us', account: 'acme', ...body }),
      });
    const shown = async () => (await us.get('/account/transactions?pageSize=1')).json.entities[0];
    for (const status of ['Failed', 'Completed']) {
      const created = await ask('/payments', { amountSettlement: 12.5 });
      const { id } = (await created.json()) as { id: number };
      expect((await shown()).id).not.toBe(id);
      pass(60);
      expect(await shown()).toMatchObject({ id, transactionStatus: 'Pending', amountSettlement: 12.5 });
      expect((await ask('/payments/settle', { id, status })).status).toBe(200);
      expect(await shown()).toMatchObject({ id, transactionStatus: 'Pending', completedAt: null });
      pass(60);
      const settled = await shown();
      expect(settled).toMatchObject({ id, transactionStatus: status });
      expect(settled.completedAt !== null).toBe(status === 'Completed');
      expect('earlier' in settled).toBe(false);
    }
    expect((await ask('/payments/settle', { id: 1, status: 'Failed' })).status).toBe(400);
    await ask('/payments', { transactionStatus: 'Completed' });
    pass(60);
    expect(await shown()).toMatchObject({ transactionStatus: 'Completed', completedAt: expect.any(String) });
  });

  it('have each of their states in turn, and no other', async () => {
    const { acme, us, pass, sandbox } = await startLagging();
    const status = async () => {
      const { entities } = (await us.get('/account/transactions?sortBy=CreatedAt&pageSize=1')).json;
      return entities[0].id === id ? entities[0].transactionStatus : 'absent';
    };
    const id = createPayment(acme);
    expect(await status()).toBe('absent');
    pass(60);
    expect(await status()).toBe('Pending');
    settlePayment(acme, id, 'Completed');
    pass(60);
    expect(await status()).toBe('Completed');
    settlePayment(acme, id, 'Cancelled');
    pass(59);
    expect(await status()).toBe('Completed');
    // A clock that is slow from now on dates no existing payment back or forth.
    sandbox.freedom.set({ clockSkewMinutes: -7 });
    expect(await status()).toBe('Completed');
    pass(1);
    expect(await status()).toBe('Cancelled');
  });
});
