/** Sample notices: for previews without a job, and for checking templates before they are stored. */
import type { Branding } from './records.ts';
import type { JobFacts, NoticeContent, NoticeKind } from './types.ts';

const OBSERVED_AT = Date.UTC(2026, 10, 19, 15, 4);

/** Returns a typical notice: three jobs of an order group, two of them in one parcel. */
export function sampleNotice(kind: NoticeKind): NoticeContent {
  const job = (jobNumber: number, description: string, parcel: string): JobFacts => ({
    jobNumber,
    orderNumber: `PO-${jobNumber - 102_000}`,
    description,
    dateOut: ['cancelled', 'reinstated', 'dispatch_revoked'].includes(kind)
      ? null
      : '2026-11-19T09:58:00-05:00',
    dateDue: '2026-11-24T00:00:00-05:00',
    formerDateDue: kind === 'due_date_changed' ? '2026-11-20T00:00:00-05:00' : null,
    tracking: [{ number: parcel, link: `https://tracking.example.com/parcels/${parcel}` }],
  });
  return {
    kind,
    orderGroup: 'SPRING-38',
    jobs: [
      job(102_417, '500 postcards A6, silk 350 g', '1Z999AA10123456784'),
      job(102_418, '2,000 flyers A5, folded', '1Z999AA10123456784'),
      job(102_420, '2 roll-up banners 85 × 200 cm', '1Z999AA10123456793'),
    ],
    observedAt: OBSERVED_AT,
  };
}

/** Returns edge cases that a template must render as well. */
export function edgeNotices(kind: NoticeKind): NoticeContent[] {
  const sample = sampleNotice(kind);
  const [first] = sample.jobs;
  const bare: JobFacts = {
    jobNumber: 102_417,
    orderNumber: null,
    description: null,
    dateOut: null,
    dateDue: null,
    formerDateDue: null,
    tracking: [],
  };
  const many = Array.from(
    { length: 60 },
    (_, index): JobFacts => ({
      ...bare,
      jobNumber: 102_417 + index,
      orderNumber: `PO-${index} & <b>partners</b>`,
      description: '"Größe XL", <i>glänzend</i> — {{ count }} 🎉 '.repeat(8),
      dateDue: `2026-11-${10 + (index % 20)}T17:00:00`,
      tracking: [
        { number: `${index % 20}`, link: null },
        { number: null, link: `https://tracking.example.com/${index}` },
      ],
    }),
  );
  return [
    { ...sample, orderGroup: null, jobs: [bare] },
    { ...sample, orderGroup: null, jobs: sample.jobs.slice(0, 1) },
    { ...sample, jobs: [{ ...bare, ...(first && { tracking: first.tracking }) }] },
    { ...sample, jobs: many },
  ];
}

/** Branding for samples. */
export const sampleBranding: Branding = {
  name: 'Northlight Print',
  logoUrl: null,
  color: '#0f766e',
  website: 'https://www.example.com',
  footer: 'Northlight Print, 12 Harbour Street, Bristol',
};
