// Sample data for jobs: customers, garments, designs, carriers, comments.

import type { RegionCode } from './regions.ts';

/** Customers of the print service by region: its first account is the first of them. */
export const CUSTOMERS: Record<RegionCode, readonly string[]> = {
  us: ['Bluebird Apparel', 'Mesa Teamwear', 'Copper & Pine', 'Lakeshore Spirit'],
  nz: ['Kōwhai Print Co', 'Southerly Threads', 'Tussock Workwear', 'Harbour Tees'],
  au: ['Wattle Lane', 'Redgum Uniforms', 'Saltbush Clothing', 'Northside Merch'],
  uk: ['Thistle & Thread', 'Pennine Kit', 'Foxglove Studio', 'Tideway Clubs'],
  eu: ['Atelier Nordlys', 'Stoffwerk Müller', 'Maison Garance', 'Polder Print'],
};

/** Garments: invented brands and styles. */
export const GARMENTS = [
  'Northloom Staple Tee, black',
  'Northloom Heavy Hood, navy',
  'Kestrel & Fern Polo, white',
  'Kestrel & Fern Softshell, charcoal',
  'Oakridge 5001 Tee, heather grey',
  'Oakridge Youth Tee, royal',
  'Brightside Hi-Vis Vest, yellow',
  'Summit Loop Beanie, forest',
  'Marlow Canvas Tote, natural',
  'Castaway Rash Vest, teal',
] as const;

/** Printed designs. */
export const DESIGNS = [
  'Left chest logo',
  'Full back crest',
  'Sleeve sponsor strip',
  'Names and numbers',
  'Festival line-up, back print',
  'Neck label, sizes S–3XL',
  'Staff shirt, front',
  'Club anniversary badge',
  'Charity run 10k, front and back',
  'Food truck menu, full front',
] as const;

/** Hostile text that customers may enter: it must be displayed, never executed. */
export const AWKWARD_TEXTS = [
  'Rush please 🙏🔥 "same blue as last time"',
  '<b>URGENT</b> – event on Saturday',
  "O'Brien & Sons <info@example.com>",
  '<script>alert("hi")</script> (typed by our web shop, ignore)',
  'Front: 5" wide; back: 12" wide & centred',
  'Ángel ♥ Zoë — 25% off {{first_name}}',
  'line one\nline two\twith a tab',
] as const;

/** Process codes of lines. */
export const PRINTED_PROCESSES = ['UC', 'DTF', 'SCR', 'VIN'] as const;

/** Channels of orders. */
export const ORIGINS = ['API', 'WEB', 'SHOP'] as const;

/** A fictional carrier. `link` is null if the carrier has no tracking page. */
export interface Carrier {
  name: string;
  prefix: string;
  link: string | null;
}

/** Carriers by region; a tracking link is `link` followed by the number. */
export const CARRIERS: Record<RegionCode, readonly [Carrier, ...Carrier[]]> = {
  us: [
    { name: 'Prairie Parcel', prefix: '1PP', link: 'https://track.prairieparcel.example/?n=' },
    { name: 'Coastline Ground', prefix: 'CG', link: 'https://coastline.example/t/' },
  ],
  nz: [
    { name: 'Tūī Post', prefix: 'TUI', link: 'https://tuipost.example/track/' },
    { name: 'Ridgeway Couriers', prefix: 'RW', link: null },
  ],
  au: [
    { name: 'Outback Express', prefix: 'OBX', link: 'https://outbackexpress.example/follow?id=' },
    { name: 'Magpie Freight', prefix: 'MF', link: null },
  ],
  uk: [
    { name: 'Albion Mail', prefix: 'AM', link: 'https://albionmail.example/trace/' },
    { name: 'Swiftlet', prefix: 'SWL', link: 'https://swiftlet.example/p/' },
  ],
  eu: [
    { name: 'Kontipost', prefix: 'KP', link: 'https://kontipost.example/track?no=' },
    { name: 'Velo Kurier', prefix: 'VK', link: null },
  ],
};
