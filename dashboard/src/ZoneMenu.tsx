/** Entries of the user menu that choose the time zone of times. */
import { Menu } from '@mantine/core';
import { useZone } from './times.tsx';
import { formatZone, toRegionZone, toZone } from './zone.ts';
import { setZoneChoice } from './zone-choice.ts';

/** `regions`: ids of the regions whose zones are offered. */
export function ZoneMenu({ regions }: { readonly regions: readonly string[] }) {
  const { choice } = useZone();
  const choices = [
    ['viewer', 'Time zone of this device'],
    ['utc', 'UTC'],
    ...regions
      .filter((id) => toRegionZone(id) !== undefined)
      .map((id) => [id, `Region ${id.toUpperCase()}`] as const),
  ] as const;
  return (
    <Menu.RadioGroup value={choice} onChange={setZoneChoice}>
      <Menu.Label>Times in</Menu.Label>
      {choices.map(([id, name]) => (
        <Menu.RadioItem key={id} value={id}>
          {id === 'utc' ? name : `${name} (${formatZone(toZone(id))})`}
        </Menu.RadioItem>
      ))}
    </Menu.RadioGroup>
  );
}
