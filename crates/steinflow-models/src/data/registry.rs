//! The data sets that have a name: eight of the usual benchmark, and two that are built in.

use super::{Archive, DataSet, Fingerprint, Layout, Splits};
use crate::Result;

/// The sets that are built in, as text; their folder says where they come from.
const BUILT_IN: [(&str, &str); 2] = [
    ("penguins", include_str!("../../data/penguins.csv")),
    ("eight-schools", include_str!("../../data/eight-schools.csv")),
];

/// The text of a set that is built in; none of another.
pub(super) fn built_in(name: &str) -> &'static [u8] {
    let found = BUILT_IN.iter().find(|(own, _)| *own == name);
    found.map_or(&[], |(_, text)| text.as_bytes())
}

/// All data sets that have a name.
pub fn data_sets() -> &'static [DataSet] {
    &DATA_SETS
}

/// What is known of the data set `name`.
pub fn data_set(name: &str) -> Result<&'static DataSet> {
    data_sets().iter().find(|set| set.name == name).ok_or_else(|| {
        let known = data_sets().iter().map(|set| set.name);
        steinflow::Error::unknown("data set", name, known).into()
    })
}

const CC_BY: &str = "CC BY 4.0";

const DATA_SETS: [DataSet; 10] = [
    DataSet {
        name: "penguins",
        title: "body mass of penguins of the Palmer Archipelago",
        rows: 333,
        features: &[
            "bill_length_mm",
            "bill_depth_mm",
            "flipper_length_mm",
            "male",
            "chinstrap",
            "gentoo",
        ],
        target: "body_mass_g",
        target_meaning: "body mass, g",
        licence: "CC0 1.0",
        citation: "Horst, Hill and Gorman (2020), palmerpenguins: Palmer Archipelago (Antarctica) penguin \
                   data, R package, doi:10.5281/zenodo.3960218",
        page: "https://allisonhorst.github.io/palmerpenguins",
        splits: Splits::Standard(20),
        fingerprint: Fingerprint::Numbers(
            "c983a18dc498393fc530de6a95a31983cd5f9677f5a5864d06fcc13235ff085c",
        ),
        archives: &[],
    },
    DataSet {
        name: "eight-schools",
        title: "effects of coaching in eight schools, with their standard errors",
        rows: 8,
        features: &["school", "error"],
        target: "effect",
        target_meaning: "effect of coaching, points",
        licence: "facts",
        citation: "Rubin (1981), Estimation in parallel randomized experiments, Journal of Educational \
                   Statistics 6",
        page: "https://doi.org/10.3102/10769986006004377",
        splits: Splits::Standard(1),
        fingerprint: Fingerprint::Numbers(
            "f6a320c0f1fae8ab36046efbf34b9f3d3ccd0f495f950023d1890c3e4eadec9c",
        ),
        archives: &[],
    },
    DataSet {
        name: "boston",
        title: "Boston housing, with the column B as the benchmark has it",
        rows: 506,
        features: &[
            "CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B",
            "LSTAT",
        ],
        target: "target",
        target_meaning: "median value of homes, 1000 USD",
        licence: "none stated",
        citation: "Harrison and Rubinfeld (1978), Hedonic housing prices and the demand for clean air, \
                   Journal of Environmental Economics and Management 5",
        page: "http://lib.stat.cmu.edu/datasets/boston",
        splits: Splits::Standard(20),
        fingerprint: Fingerprint::Numbers(
            "832e894115c56dd24ec63848d4a3d9bd921d268d0be1bee2a8f4ee5ea318f5f7",
        ),
        archives: &[
            Archive {
                url: "http://lib.stat.cmu.edu/datasets/boston",
                sha256: None,
                member: None,
                layout: Layout::Spaced { prose: 22 },
                columns: 14,
                target: 13,
            },
            Archive {
                url: "https://archive.ics.uci.edu/ml/machine-learning-databases/housing/housing.data",
                sha256: None,
                member: None,
                layout: Layout::Spaced { prose: 0 },
                columns: 14,
                target: 13,
            },
        ],
    },
    DataSet {
        name: "concrete",
        title: "compressive strength of concrete",
        rows: 1030,
        features: &[
            "cement",
            "blast_furnace_slag",
            "fly_ash",
            "water",
            "superplasticizer",
            "coarse_aggregate",
            "fine_aggregate",
            "age",
        ],
        target: "target",
        target_meaning: "compressive strength, MPa",
        licence: CC_BY,
        citation: "Yeh (1998), Modeling of strength of high-performance concrete using artificial neural \
                   networks, Cement and Concrete Research 28",
        page: "https://archive.ics.uci.edu/dataset/165/concrete+compressive+strength",
        splits: Splits::Standard(20),
        fingerprint: Fingerprint::Numbers(
            "d0e2d2f0f50277624d7d00b98c4e8b66465e8d5f2f51738500552b8b10a4689b",
        ),
        archives: &[Archive {
            // The spreadsheet in UCI's zip archive has digits that the benchmark's copy lacks.
            url: "https://archive.ics.uci.edu/static/public/165/data.csv",
            sha256: None,
            member: None,
            layout: Layout::Csv,
            columns: 9,
            target: 8,
        }],
    },
    DataSet {
        name: "energy",
        title: "heating load of buildings",
        rows: 768,
        features: &[
            "relative_compactness",
            "surface_area",
            "wall_area",
            "roof_area",
            "overall_height",
            "orientation",
            "glazing_area",
            "glazing_area_distribution",
        ],
        target: "target",
        target_meaning: "heating load (Y1; the cooling load Y2 is left out)",
        licence: CC_BY,
        citation: "Tsanas and Xifara (2012), Accurate quantitative estimation of energy performance of \
                   residential buildings using statistical machine learning tools, Energy and Buildings 49",
        page: "https://archive.ics.uci.edu/dataset/242/energy+efficiency",
        splits: Splits::Standard(20),
        fingerprint: Fingerprint::Numbers(
            "3563209cb65c108b72e6ee45f56f12e53c3f346f10b6b30a79ec5b7c0a0a1dd9",
        ),
        archives: &[Archive {
            url: "https://archive.ics.uci.edu/static/public/242/energy+efficiency.zip",
            sha256: None,
            member: Some("ENB2012_data.xlsx"),
            layout: Layout::Sheet,
            columns: 10,
            target: 8,
        }],
    },
    DataSet {
        name: "kin8nm",
        title: "simulated forward kinematics of an eight-link robot arm",
        rows: 8192,
        features: &["theta1", "theta2", "theta3", "theta4", "theta5", "theta6", "theta7", "theta8"],
        target: "target",
        target_meaning: "distance of the arm's end from a target",
        licence: "none stated",
        citation: "Ghahramani (1996), The kin datasets, DELVE archive, University of Toronto",
        page: "https://www.openml.org/d/189",
        splits: Splits::Standard(20),
        fingerprint: Fingerprint::Numbers(
            "7fad37438fc1228ed099177766b084fb5577bf7457d7a6460f8d0389b21681ab",
        ),
        archives: &[Archive {
            url: "https://www.openml.org/data/download/3626/dataset_2175_kin8nm.arff",
            sha256: None,
            member: None,
            layout: Layout::Arff,
            columns: 9,
            target: 8,
        }],
    },
    DataSet {
        name: "power",
        title: "output of a combined cycle power plant",
        rows: 9568,
        features: &["AT", "V", "AP", "RH"],
        target: "target",
        target_meaning: "net hourly electrical output, MW",
        licence: CC_BY,
        citation: "Tüfekci (2014), Prediction of full load electrical power output of a base load operated \
                   combined cycle power plant using machine learning methods, International Journal of \
                   Electrical Power & Energy Systems 60",
        page: "https://archive.ics.uci.edu/dataset/294/combined+cycle+power+plant",
        splits: Splits::Standard(20),
        fingerprint: Fingerprint::Numbers(
            "d3c75624ea5df1256c9b8e81560e1f9381014565c5f558d3293831fa521b82e9",
        ),
        archives: &[
            Archive {
                url: "https://archive.ics.uci.edu/static/public/294/combined+cycle+power+plant.zip",
                sha256: None,
                member: Some("Folds5x2_pp.xlsx"),
                layout: Layout::Sheet,
                columns: 5,
                target: 4,
            },
            Archive {
                url: "https://archive.ics.uci.edu/static/public/294/data.csv",
                sha256: None,
                member: None,
                layout: Layout::Csv,
                columns: 5,
                target: 4,
            },
        ],
    },
    DataSet {
        name: "yacht",
        title: "resistance of sailing yachts",
        rows: 308,
        features: &[
            "longitudinal_position",
            "prismatic_coefficient",
            "length_displacement_ratio",
            "beam_draught_ratio",
            "length_beam_ratio",
            "froude_number",
        ],
        target: "target",
        target_meaning: "residuary resistance per unit weight of displacement",
        licence: CC_BY,
        citation: "Gerritsma, Onnink and Versluis (1981), Geometry, resistance and stability of the Delft \
                   systematic yacht hull series, International Shipbuilding Progress 28",
        page: "https://archive.ics.uci.edu/dataset/243/yacht+hydrodynamics",
        splits: Splits::Standard(20),
        fingerprint: Fingerprint::Numbers(
            "ec08588637fd93582116a1ead33f0c1e787dae755168073608e030e5282a3f4e",
        ),
        archives: &[Archive {
            url: "https://archive.ics.uci.edu/static/public/243/yacht+hydrodynamics.zip",
            sha256: None,
            member: Some("yacht_hydrodynamics.data"),
            layout: Layout::Spaced { prose: 0 },
            columns: 7,
            target: 6,
        }],
    },
    DataSet {
        name: "protein",
        title: "physicochemical properties of protein tertiary structure",
        rows: 45_730,
        features: &["F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9"],
        target: "target",
        target_meaning: "RMSD, size of the residue",
        licence: CC_BY,
        citation: "Rana (2013), Physicochemical Properties of Protein Tertiary Structure, UCI Machine \
                   Learning Repository",
        page: "https://archive.ics.uci.edu/dataset/265/physicochemical+properties+of+protein+tertiary+structure",
        splits: Splits::Standard(5),
        fingerprint: Fingerprint::Numbers(
            "19667c545027b658fa8b2fa3620154e7046b3d263df1ec263514676eb3585096",
        ),
        archives: &[Archive {
            url: "https://archive.ics.uci.edu/static/public/265/physicochemical+properties+of+protein+tertiary+structure.zip",
            sha256: None,
            member: Some("CASP.csv"),
            layout: Layout::Csv,
            columns: 10,
            target: 0,
        }],
    },
    DataSet {
        name: "year",
        title: "year of release of a song from its timbre",
        rows: 515_345,
        features: &TIMBRE,
        target: "target",
        target_meaning: "year of release",
        licence: CC_BY,
        citation: "Bertin-Mahieux, Ellis, Whitman and Lamere (2011), The Million Song Dataset, ISMIR",
        page: "https://archive.ics.uci.edu/dataset/203/yearpredictionmsd",
        splits: Splits::FirstRows(463_715),
        fingerprint: Fingerprint::File(
            "4b6f8e50235b359e01689ae7fb33ad0f89677e9a15f25f3d6259327a6bb927bb",
        ),
        archives: &[Archive {
            url: "https://archive.ics.uci.edu/static/public/203/yearpredictionmsd.zip",
            sha256: Some("06f801af323bb7798e800583acce4ea1ed2697ac12c23f4424aea0a7a3d09e11"),
            member: Some("YearPredictionMSD.txt"),
            layout: Layout::Headerless,
            columns: 91,
            target: 0,
        }],
    },
];

/// Twelve averages and their 78 covariances.
const TIMBRE: [&str; 90] = [
    "average_1",
    "average_2",
    "average_3",
    "average_4",
    "average_5",
    "average_6",
    "average_7",
    "average_8",
    "average_9",
    "average_10",
    "average_11",
    "average_12",
    "covariance_1",
    "covariance_2",
    "covariance_3",
    "covariance_4",
    "covariance_5",
    "covariance_6",
    "covariance_7",
    "covariance_8",
    "covariance_9",
    "covariance_10",
    "covariance_11",
    "covariance_12",
    "covariance_13",
    "covariance_14",
    "covariance_15",
    "covariance_16",
    "covariance_17",
    "covariance_18",
    "covariance_19",
    "covariance_20",
    "covariance_21",
    "covariance_22",
    "covariance_23",
    "covariance_24",
    "covariance_25",
    "covariance_26",
    "covariance_27",
    "covariance_28",
    "covariance_29",
    "covariance_30",
    "covariance_31",
    "covariance_32",
    "covariance_33",
    "covariance_34",
    "covariance_35",
    "covariance_36",
    "covariance_37",
    "covariance_38",
    "covariance_39",
    "covariance_40",
    "covariance_41",
    "covariance_42",
    "covariance_43",
    "covariance_44",
    "covariance_45",
    "covariance_46",
    "covariance_47",
    "covariance_48",
    "covariance_49",
    "covariance_50",
    "covariance_51",
    "covariance_52",
    "covariance_53",
    "covariance_54",
    "covariance_55",
    "covariance_56",
    "covariance_57",
    "covariance_58",
    "covariance_59",
    "covariance_60",
    "covariance_61",
    "covariance_62",
    "covariance_63",
    "covariance_64",
    "covariance_65",
    "covariance_66",
    "covariance_67",
    "covariance_68",
    "covariance_69",
    "covariance_70",
    "covariance_71",
    "covariance_72",
    "covariance_73",
    "covariance_74",
    "covariance_75",
    "covariance_76",
    "covariance_77",
    "covariance_78",
];
